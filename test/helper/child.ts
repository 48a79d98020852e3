import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'

/** The end of a process: one of the two is null. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A child process that ends with its test. */
export interface Child {
  readonly pid: number
  /** The output so far. */
  readonly stdout: string
  readonly stderr: string
  /** The first matching line of both streams since the start. Rejects when the process ends or the time is over. */
  waitForLine(match: RegExp | string, withinMs?: number): Promise<string>
  signal(name: NodeJS.Signals): void
  /** Settles when the process has ended and its output is complete. */
  readonly exited: Promise<Exit>
}

/** The part of tap's `t` that registers cleanup steps. */
export type Teardown = Pick<Test, 'teardown'>

/** Generous: on a machine with a load average of 20 the demo backend takes a minute to start. */
const LINE_WITHIN_MS = 300_000

/**
 * `npm test` optimizes late and has a large young generation, see `scripts/lib/run-groups.ts`. Not its maximum, which is an option of
 * the relay.
 */
export const V8_OPTIONS = process.execArgv.filter((argument) =>
  /^--(?:interrupt-budget|min-semi-space-size)=/.test(argument)
)

/** Starts `command` (an absolute path) with exactly this environment. */
export const startChild = async (
  t: Teardown,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>
): Promise<Child> => {
  // tap adds NODE_OPTIONS and other variables to every process that a test spawns. env(1) removes them and then executes
  // the command, so that the pid is the command's.
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const options = command === process.execPath ? V8_OPTIONS : []
  const child = spawn('env', ['-i', ...variables, command, ...options, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  await once(child, 'spawn')
  const exit = once(child, 'exit')
  const closed = once(child, 'close')
  killWithParent(child)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
  })

  const lines = new Lines()
  const stdout = lines.collect(child.stdout)
  const stderr = lines.collect(child.stderr)
  const exited = closed.then(([code, signal]): Exit => ({ code, signal }))
  const ended = exited.then(({ code, signal }) => `ended with ${code ?? signal}`)

  return {
    pid: child.pid as number, // it has spawned
    get stdout() {
      return stdout.text
    },
    get stderr() {
      return stderr.text
    },
    exited,
    signal: (name) => {
      child.kill(name)
    },
    waitForLine: (match, withinMs = LINE_WITHIN_MS) =>
      new Promise((resolve, reject) => {
        const giveUp = (reason: string): void => {
          clearTimeout(timer)
          const output = stdout.text + stderr.text || '(nothing)'
          reject(new Error(`${command} ${args.join(' ')} ${reason} before it printed ${match}; it printed:\n${output}`))
        }
        const timer = setTimeout(giveUp, withinMs, `was silent for ${withinMs} ms`)
        void ended.then(giveUp)
        lines.first(match, (line) => {
          clearTimeout(timer)
          resolve(line)
        })
      })
  }
}

/** The lines of both streams in the order of arrival, and the callers that wait for one. */
class Lines {
  readonly #seen: string[] = []
  readonly #waiters = new Set<(line: string) => void>()

  collect(stream: Readable): { readonly text: string } {
    const collected = { text: '' }
    stream.setEncoding('utf8').on('data', (text: string) => {
      collected.text += text
    })
    createInterface({ input: stream }).on('line', (line) => {
      this.#seen.push(line)
      for (const wait of [...this.#waiters]) wait(line)
    })
    return collected
  }

  first(match: RegExp | string, found: (line: string) => void): void {
    const matches = (line: string): boolean => (typeof match === 'string' ? line.includes(match) : match.test(line))
    const seen = this.#seen.find(matches)
    if (seen !== undefined) {
      found(seen)
      return
    }

    const wait = (line: string): void => {
      if (!matches(line)) return
      this.#waiters.delete(wait)
      found(line)
    }
    this.#waiters.add(wait)
  }
}

/**
 * A test file that tap stops after a timeout runs no teardown. A shell, which the terminal's Ctrl-C does not reach, waits
 * until the pipe to this process breaks and then kills the child.
 */
const killWithParent = (child: ChildProcess): void => {
  const killer = spawn('sh', ['-c', `read -r _; kill -KILL ${child.pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true
  })
  // After the end of the child its process id may be reused.
  child.once('exit', () => killer.kill('SIGKILL'))
}
