import { execFile } from 'node:child_process'
import { t } from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { scriptArguments } from '../helper/script.js'

interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const run = (script: string, ...args: readonly string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile(process.execPath, [...scriptArguments(script), ...args], { cwd: ROOT }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    )
  })

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
  ['scripts/draw-cost.ts', 'x'],
  ['scripts/screenshots.ts', 'x'],
  ['scripts/image/assemble.ts', 'gatway', 'image'],
  ['test/containers/main.ts', 'gatway'],
  ['test/soak/main.ts', '--seed', 'x'],
  ['bench/main.ts', 'gatway'],
  ['bench/main.ts', '--rounds', 'x'],
  ['bench/main.ts', 'soak', '--minutes', '0'],
  ['bench/main.ts', '--quik'],
  ['bench/main.ts', '--quick', '--node', '18']
]

for (const [script, ...args] of WRONG) {
  t.test(`${script} ${args.join(' ')} prints the usage and exits with 2`, async (t) => {
    const { code, stderr } = await run(script, ...args)
    t.equal(code, 2)
    t.match(stderr, /^Usage: /m)
  })
}

t.test('--help prints the usage and exits with 0', async (t) => {
  const { code, stdout } = await run('scripts/test.ts', '--help')
  t.equal(code, 0)
  t.match(stdout, /^Usage: npm test /)
})
