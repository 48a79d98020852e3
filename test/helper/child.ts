import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'

/** How a process ended: one of the two is null. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A process that lives no longer than its test. */
export interface Child {
  readonly pid: number
  /** Everything it has printed so far. */
  readonly stdout: string
  readonly stderr: string
  /** The first line, on either stream and since its start, that matches. Rejects when it ends or stays silent. */
  waitForLine(match: RegExp | string, withinMs?: number): Promise<string>
  signal(name: NodeJS.Signals): void
  /** Settles when it is gone and all it printed is here. */
  readonly exited: Promise<Exit>
}

/** Any `t` of tap will do. */
export type Teardown = Pick<Test, 'teardown'>

const LINE_WITHIN_MS = 60_000

/** Starts `command` (an absolute path) with exactly this environment. */
export const startChild = async (
  t: Teardown,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>
): Promise<Child> => {
  // tap adds its own NODE_OPTIONS and variables to every process that a test spawns, whatever `env` says; env(1) sheds
  // them and then becomes the command, so that the pid is the command's
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const child = spawn('env', ['-i', ...variables, command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  await once(child, 'spawn')
  const exit = once(child, 'exit')
  const closed = once(child, 'close')
  leash(child)
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
        const giveUp = (why: string): void => {
          clearTimeout(timer)
          const said = stdout.text + stderr.text || '(nothing)'
          reject(new Error(`${command} ${args.join(' ')} ${why} before it printed ${match}; it printed:\n${said}`))
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

/** The lines of both streams in the order they came, and those who wait for one. */
class Lines {
  readonly #seen: string[] = []
  readonly #waiting = new Set<(line: string) => void>()

  collect(stream: Readable): { readonly text: string } {
    const collected = { text: '' }
    stream.setEncoding('utf8').on('data', (text: string) => {
      collected.text += text
    })
    createInterface({ input: stream }).on('line', (line) => {
      this.#seen.push(line)
      for (const wait of [...this.#waiting]) wait(line)
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
      this.#waiting.delete(wait)
      found(line)
    }
    this.#waiting.add(wait)
  }
}

/**
 * A test file that tap stops for its slowness runs no teardown. A shell, out of reach of the terminal's Ctrl-C, waits for
 * the pipe to this process to break and then takes the child along.
 */
const leash = (child: ChildProcess): void => {
  const holder = spawn('sh', ['-c', `read -r _; kill -KILL ${child.pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true
  })
  // once the child is gone its number may be given to a stranger
  child.once('exit', () => holder.kill('SIGKILL'))
}
