import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import type { Environment } from '../../shared/env.js'
import { CommandError } from '../command.js'
import { readableLine } from './readable-line.js'

/** A program that runs beside others. */
export interface ProgramCommand {
  readonly name: string
  readonly command: readonly string[]
  readonly env: Environment
  /** An address at which it answers when it is ready. */
  readonly url: string
  /** Whether any response means that it is ready, not only a successful one. */
  readonly isReadyWithAnyStatus?: boolean
  /** Whether it is started again when a file in its command changes. */
  readonly isWatched?: boolean
}

const POLL_MS = 100
/** Longer than the programs' own shutdown deadline. */
const KILL_AFTER_MS = 15_000

/** A program as a child process; its log lines are printed. */
export class RunningProgram {
  readonly program: ProgramCommand
  readonly #child: ChildProcess
  /** Resolves with a description of its end. */
  readonly ended: Promise<string>
  #wasReady = false

  constructor(program: ProgramCommand, print: (line: string) => void) {
    this.program = program
    const [file = '', ...args] = program.command
    this.#child = spawn(file, args, {
      env: program.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      // The terminal's Ctrl-C does not reach it: a second signal would abort the shutdown that `stop` starts.
      detached: true
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => print(readableLine(program.name, line)))
    }
    this.ended = once(this.#child, 'close').then(
      ([code, signal]) => `ended with ${code ?? signal}`,
      (error: Error) => `cannot be started (${error.message})`
    )
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Whether it has answered. */
  get wasReady(): boolean {
    return this.#wasReady
  }

  /** Resolves when it answers; rejects when the program ends before. */
  async ready(): Promise<void> {
    const { name, url, isReadyWithAnyStatus = false } = this.program
    let end: string | null = null
    void this.ended.then((description) => {
      end = description
    })
    while (end === null) {
      const isUp = await fetch(url, { redirect: 'manual' }).then(
        async ({ ok, body }) => {
          await body?.cancel()
          return ok || isReadyWithAnyStatus
        },
        () => false
      )
      if (isUp) {
        this.#wasReady = true
        return
      }
      await delay(POLL_MS)
    }
    throw new CommandError([`The ${name} ${end}.`])
  }

  /** Stops the program and the processes that it started, such as the children of a shell. */
  async stop(): Promise<void> {
    this.#signal('SIGTERM')
    const killTimer = setTimeout(() => this.#signal('SIGKILL'), KILL_AFTER_MS)
    await this.ended
    clearTimeout(killTimer)
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    try {
      // It leads a process group, because it is detached.
      if (pid !== undefined && process.platform !== 'win32') process.kill(-pid, signal)
      else this.#child.kill(signal)
    } catch {
      // It has ended.
    }
  }
}
