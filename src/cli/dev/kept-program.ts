import { statSync, unwatchFile, watchFile } from 'node:fs'
import { isAbsolute, relative } from 'node:path'
import { type ProgramCommand, RunningProgram } from './running-program.js'

const MAX_DELAY_S = 30
const WAITING_MS = 5000
const WATCH_INTERVAL_MS = 300

export interface KeptProgramOptions {
  readonly print: (line: string) => void
  /** Called when a program that was started again answers. */
  readonly onRestarted: () => void
}

/** A program that is started again when it ends, with growing delays, and when one of its files changes. */
export class KeptProgram {
  readonly #program: ProgramCommand
  readonly #options: KeptProgramOptions
  readonly #files: readonly string[]
  #running: RunningProgram
  #hasAnswered = false
  #isStopped = false
  #isRestarting = false
  /** Ends without an answer since the last one. */
  #failures = 0
  #timer: NodeJS.Timeout | undefined

  constructor(program: ProgramCommand, options: KeptProgramOptions) {
    this.#program = program
    this.#options = options
    this.#files = program.isWatched ? filesIn(program.command) : []
    this.#running = this.#launch()
  }

  /** Resolves when it answers; rejects with a `CommandError` when it ends before. */
  async ready(): Promise<void> {
    await this.#answer(this.#running)
    this.#hasAnswered = true
    if (this.#isStopped) return
    for (const file of this.#files)
      watchFile(file, { interval: WATCH_INTERVAL_MS }, (now, before) => {
        // Zero while an editor replaces the file.
        if (now.mtimeMs !== before.mtimeMs && now.mtimeMs !== 0) void this.#changed(file)
      })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    for (const file of this.#files) unwatchFile(file)
    await this.#running.stop()
  }

  #launch(): RunningProgram {
    const running = new RunningProgram(this.#program, this.#options.print)
    void running.ended.then((end) => this.#ended(end))
    return running
  }

  /** Says what it waits for if that takes long. */
  async #answer(running: RunningProgram): Promise<void> {
    const { name, url } = this.#program
    const waiting = setInterval(
      () => this.#options.print(`  Waiting for the ${name} to answer at ${url} …`),
      WAITING_MS
    )
    try {
      await running.ready()
      this.#failures = 0
    } finally {
      clearInterval(waiting)
    }
  }

  #ended(end: string): void {
    // The first start fails as a whole.
    if (this.#isStopped || this.#isRestarting || !this.#hasAnswered) return
    const seconds = Math.min(2 ** this.#failures, MAX_DELAY_S)
    this.#failures += 1
    const change = this.#files.length === 0 ? '' : `, or when ${this.#files.join(', ')} changes`
    this.#options.print(`\n  The ${this.#program.name} ${end}. It starts again in ${seconds} s${change}.\n`)
    this.#timer = setTimeout(() => this.#startAgain(), seconds * 1000)
  }

  async #changed(file: string): Promise<void> {
    if (this.#isStopped || this.#isRestarting) return
    this.#isRestarting = true
    clearTimeout(this.#timer)
    this.#options.print(`\n  ${file} has changed. The ${this.#program.name} starts again …\n`)
    await this.#running.stop()
    this.#isRestarting = false
    if (!this.#isStopped) this.#startAgain()
  }

  #startAgain(): void {
    this.#running = this.#launch()
    // Its end is handled above.
    this.#answer(this.#running).then(this.#options.onRestarted, () => undefined)
  }
}

/** The files of a command that a developer changes: those in this folder, such as `backend.py`, and not in installed packages. */
const filesIn = (command: readonly string[]): string[] =>
  command.filter((word) => {
    const path = relative('', word)
    const isInside = path !== '' && !path.startsWith('..') && !isAbsolute(path) && !path.includes('node_modules')
    return isInside && statSync(path, { throwIfNoEntry: false })?.isFile() === true
  })
