import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { ROOT } from './root.js'
import { noTests, readTap, type TestListener, type TestTotals } from './tap-results.js'

/** Twice the cores of a small machine: tests wait for processes, sockets and timers at times. */
const JOBS = 4

export interface RunOptions {
  readonly env: NodeJS.ProcessEnv
  readonly listener: TestListener
  readonly print: (line: string) => void
}

/** Runs commands that print TAP, several at a time, in their order. Resolves with the totals of all. */
export const runTests = async (
  commands: readonly (readonly string[])[],
  { env, listener, print }: RunOptions
): Promise<TestTotals> => {
  const totals = noTests()
  const waiting = [...commands]
  const running = new Set<ChildProcess>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      waiting.length = 0
      for (const { pid } of running) if (pid !== undefined) process.kill(-pid, 'SIGKILL')
    })
  }

  const run = async ([program = '', ...args]: readonly string[]): Promise<TestTotals> => {
    const child = spawn(program, args, {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
      // In a process group of its own: on a signal the whole group is killed, with the programs that the tests started.
      detached: true
    })
    running.add(child)
    const exit = once(child, 'exit')
    const result = await readTap(child.stdout.setEncoding('utf8'), listener)
    const [code, signal] = await exit
    running.delete(child)
    if (code !== 0 && result.failed === 0) {
      print(`${[program, ...args].join(' ')} ended with ${code ?? signal}`)
      result.failed++
    }
    return result
  }

  const runWaiting = async (): Promise<void> => {
    for (let command = waiting.shift(); command !== undefined; command = waiting.shift()) {
      const { passed, failed, skipped, todo } = await run(command)
      totals.passed += passed
      totals.failed += failed
      totals.skipped += skipped
      totals.todo += todo
    }
  }
  await Promise.all(Array.from({ length: JOBS }, runWaiting))
  return totals
}
