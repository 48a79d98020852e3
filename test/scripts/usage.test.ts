import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { t } from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { required } from '../helper/required.js'
import { scriptArguments } from '../helper/script.js'
import type { Outcome } from './run-scripts.js'

const WRONG: readonly (readonly [script: string, ...args: string[]])[] = [
  ['scripts/test.ts', '--unknown'],
  ['scripts/test.ts', '--node', '18'],
  ['scripts/test.ts', 'test/no-such.test.ts'],
  ['scripts/start.ts', '--no-biuld'],
  ['scripts/capacity.ts', '--connections', 'many'],
  ['scripts/capacity.ts', '--machine'],
  ['scripts/sbom.ts', 'x'],
  ['scripts/docs.ts', 'x'],
  ['scripts/manifests.ts', 'x'],
  ['scripts/release.ts', 'x'],
  ['scripts/client-api.ts', 'x'],
  ['scripts/protocol.ts', 'x'],
  ['scripts/screenshots.ts', 'x'],
  ['test/containers/main.ts', 'gatway'],
  ['test/soak/main.ts', '--seed', 'x'],
  ['bench/main.ts', 'gatway'],
  ['bench/main.ts', '--rounds', 'x'],
  ['bench/main.ts', 'gateway', '--seconds', '0'],
  ['bench/main.ts', '--quik'],
  ['bench/main.ts', '--quick', '--node', '18']
]

/** In one process, because loading what the scripts share takes longer than running them. */
const run = async (commands: typeof WRONG): Promise<readonly Outcome[]> => {
  const paths = commands.map(([script, ...args]) => [required(scriptArguments(script).at(-1)), ...args])
  const command = [...scriptArguments('test/scripts/run-scripts.ts'), JSON.stringify(paths)]
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: ROOT })
  return JSON.parse(stdout)
}

const [help, ...outcomes] = await run([['scripts/test.ts', '--help'], ...WRONG])

for (const [index, command] of WRONG.entries()) {
  t.test(`${command.join(' ')} prints the usage and exits with 2`, async (t) => {
    const { code, stderr } = required(outcomes[index])
    t.equal(code, 2)
    t.match(stderr, /^Usage: /m)
  })
}

t.test('--help prints the usage and exits with 0', async (t) => {
  const { code, stdout } = required(help)
  t.equal(code, 0)
  t.match(stdout, /^Usage: npm test /)
})

// The first one sets the exit code of its process, the other one ends it.
for (const [script, ...args] of [
  ['scripts/capacity.ts', '--unknown'],
  ['scripts/image/assemble.ts', 'gatway', 'image']
] as const) {
  t.test(`a process of ${script} ${args.join(' ')} prints the usage and exits with 2`, async (t) => {
    const command = [...scriptArguments(script), ...args]
    await t.rejects(promisify(execFile)(process.execPath, command, { cwd: ROOT }), { code: 2, stderr: /^Usage: /m })
  })
}
