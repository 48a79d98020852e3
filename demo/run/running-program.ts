import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { readableLine } from './readable-line.js'
import type { Program } from './stack.js'

/** A failure that the user can fix, such as a port in use. */
export class DemoError extends Error {}

const POLL_MS = 100
/** Longer than the programs' own shutdown deadline. */
const KILL_AFTER_MS = 15_000

/** A program of the demo as a child process; its log lines are printed. */
export class RunningProgram {
  readonly program: Program
  readonly #child: ChildProcess
  /** Resolves with a description of its end. */
  readonly ended: Promise<string>
  #wasReady = false

  constructor(program: Program, env: NodeJS.ProcessEnv, print: (line: string) => void) {
    this.program = program
    this.#child = spawn(process.execPath, [...program.nodeFlags, program.entry], {
      env: { ...env, ...program.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // The terminal's Ctrl-C does not reach it: a second signal would abort the shutdown that `stop` starts.
      detached: true
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => print(readableLine(program.name, line)))
    }
    this.ended = once(this.#child, 'close').then(([code, signal]) => `ended with ${code ?? signal}`)
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Whether its health check has succeeded. */
  get wasReady(): boolean {
    return this.#wasReady
  }

  /** Resolves when its health check succeeds; rejects when the program ends before. */
  async ready(): Promise<void> {
    const { name, port, healthPath } = this.program
    let end: string | null = null
    void this.ended.then((description) => {
      end = description
    })
    while (end === null) {
      const isUp = await fetch(`http://127.0.0.1:${port}${healthPath}`).then(
        ({ ok }) => ok,
        () => false
      )
      if (isUp) {
        this.#wasReady = true
        return
      }
      await delay(POLL_MS)
    }
    throw new DemoError(`The ${name} ${end}.`)
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    const killTimer = setTimeout(() => this.#child.kill('SIGKILL'), KILL_AFTER_MS)
    await this.ended
    clearTimeout(killTimer)
  }
}
