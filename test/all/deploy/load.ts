import { setTimeout as wait } from 'node:timers/promises'

const PAUSE_MS = 50

/** Repeats a call, several at a time, until `stop`. */
export class Load {
  readonly #inFlight = new Set<Promise<void>>()
  readonly #errors: string[] = []
  #done = 0
  #stopped = false

  /** `call` rejects or resolves with an error message if it fails. Its argument is the number of the call, from 1. */
  constructor(concurrency: number, call: (count: number) => Promise<string | undefined>) {
    let count = 0
    const repeat = async (): Promise<void> => {
      while (!this.#stopped) {
        const current = this.#one(call, ++count)
        this.#inFlight.add(current)
        await current
        this.#inFlight.delete(current)
        // Leaves CPU time for the programs that start meanwhile.
        await wait(PAUSE_MS)
      }
    }
    for (let runner = 0; runner < concurrency; runner++) void repeat()
  }

  async #one(call: (count: number) => Promise<string | undefined>, count: number): Promise<void> {
    try {
      const error = await call(count)
      if (error === undefined) this.#done += 1
      else this.#errors.push(error)
    } catch (error) {
      this.#errors.push(String(error))
    }
  }

  get errors(): readonly string[] {
    return this.#errors
  }

  /** Number of successful calls. */
  get done(): number {
    return this.#done
  }

  /** Resolves when all calls that are in flight now have ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#inFlight])
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.settled()
  }
}
