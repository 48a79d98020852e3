import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { ROOT } from '../root.js'
import { readableLine } from './readable-line.js'
import type { Program } from './stack.js'

/** Something that the person at the terminal can do something about: told in a line, without a stack trace. */
export class CannotStart extends Error {}

const ASK_EVERY_MS = 100
/** A little more than the programs' own grace. */
const KILL_AFTER_MS = 15_000

/** One of the three, as a process; what it logs is passed on line by line. */
export class RunningProgram {
  readonly program: Program
  readonly #child: ChildProcess
  /** Resolves with how it ended. */
  readonly ended: Promise<string>

  constructor(program: Program, env: NodeJS.ProcessEnv, say: (line: string) => void) {
    this.program = program
    this.#child = spawn(process.execPath, [program.entry], {
      cwd: ROOT,
      env: { ...env, ...program.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // Out of reach of the terminal's Ctrl-C: it is told to stop once, by us. Told twice, it would drop what it is doing.
      detached: true
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => say(readableLine(program.name, line)))
    }
    this.ended = once(this.#child, 'close').then(([code, signal]) => `ended with ${code ?? signal}`)
  }

  /** Resolves when it answers its health probe; rejects when it ends before. */
  async ready(): Promise<void> {
    const { name, port, healthPath } = this.program
    let end: string | null = null
    void this.ended.then((how) => {
      end = how
    })
    while (end === null) {
      const isUp = await fetch(`http://127.0.0.1:${port}${healthPath}`).then(
        ({ ok }) => ok,
        () => false
      )
      if (isUp) return
      await delay(ASK_EVERY_MS)
    }
    throw new CannotStart(`The ${name} ${end}.`)
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    const impatience = setTimeout(() => this.#child.kill('SIGKILL'), KILL_AFTER_MS)
    await this.ended
    clearTimeout(impatience)
  }
}
