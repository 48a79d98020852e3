import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { missingFlags } from '../../src/cli/run-with-flags.js'
import { V8_FLAGS } from '../../src/shared/v8-flags.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'

const MAIN = join(ROOT, 'dist/src/cli/main.js')
const SECRET = 'b1c2d3e4'.repeat(8)

const variables = (t: Test) => ({
  gateway: { NODE_ENV: 'test', GATEWAY_PORT: '0', AUDIT_LOG_FILE: join(t.testdir(), 'audit.jsonl') },
  relay: { NODE_ENV: 'test', RELAY_PORT: '0', REALTIME_HMAC_SECRET: SECRET, REALTIME_API_KEY: SECRET }
})

/** The processes that a process started, and theirs. */
const descendants = (pid: number): number[] => {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
        return [[Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])] as const]
      } catch {
        // It has ended.
        return []
      }
    })
  const childrenOf = (parent: number): number[] =>
    parents.flatMap(([child, its]) => (its === parent ? [child, ...childrenOf(child)] : []))
  return childrenOf(pid)
}

const commandLine = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')

t.test('flags that node was started with are not added again', async (t) => {
  const flags = ['--no-allocation-site-pretenuring', '--max-semi-space-size=16']
  const missing = (execArgv: string[], nodeOptions = '') => missingFlags(flags, { execArgv, nodeOptions })
  t.same(missing([]), flags)
  t.same(missing(flags), [])
  t.same(missing(['--max_semi_space_size=64']), ['--no-allocation-site-pretenuring'])
  t.same(missing(['--allocation-site-pretenuring']), ['--max-semi-space-size=16'])
  t.same(missing([], '--enable-source-maps --max-semi-space-size=64'), ['--no-allocation-site-pretenuring'])
})

for (const name of ['gateway', 'relay'] as const) {
  t.test(`gatehouse ${name} runs with its V8 flags and stops with 0 at SIGTERM`, async (t) => {
    const child = await startChild(t, process.execPath, [MAIN, name], {
      PATH: environment.path,
      ...variables(t)[name]
    })
    await child.waitForLine(/listening/)
    // Node.js 22.15 and newer replace the process.
    const [program = child.pid, ...others] = descendants(child.pid)
    for (const flag of V8_FLAGS[name]) t.match(commandLine(program), ` ${flag} `)
    t.equal(commandLine(program).split(V8_FLAGS[name][0]).length, 2, 'the flag occurs once')
    t.same(others, [])
    child.signal('SIGHUP')
    child.signal('SIGTERM')
    t.same(await child.exited, { code: 0, signal: null })
    t.match(child.stdout, '"msg":"stopped"')
  })
}

t.test('gatehouse relay exits with the code of a failed start, and ends as its program ends', async (t) => {
  const failed = await startChild(t, process.execPath, [MAIN, 'relay'], { PATH: environment.path })
  t.same(await failed.exited, { code: 1, signal: null })
  t.match(failed.stderr, 'relay: REALTIME_HMAC_SECRET is required')

  const killed = await startChild(t, process.execPath, [MAIN, 'relay'], {
    PATH: environment.path,
    ...variables(t).relay
  })
  await killed.waitForLine(/listening/)
  process.kill(descendants(killed.pid)[0] ?? killed.pid, 'SIGKILL')
  t.same(await killed.exited, { code: null, signal: 'SIGKILL' })
})

t.test('workers of gatehouse relay have the flags too, and nothing survives a killed parent', async (t) => {
  const child = await startChild(t, process.execPath, [MAIN, 'relay'], {
    PATH: environment.path,
    ...variables(t).relay,
    RELAY_WORKERS: '2'
  })
  await child.waitForLine(/listening/)
  const processes = descendants(child.pid)
  t.ok(processes.length >= 2)
  for (const pid of processes) t.match(commandLine(pid), V8_FLAGS.relay.join(' '))
  child.signal('SIGKILL')
  const isAlive = (pid: number): boolean => {
    try {
      return commandLine(pid) !== ''
    } catch {
      return false
    }
  }
  await eventually(() => !processes.some(isAlive), { label: 'no process of the killed command is left' })
})
