import type { Logger } from 'pino'

const CHECK_EVERY_MS = 2000

/** Checks the site, by default every two seconds. A slow database delays the next check instead of queueing checks. */
export abstract class RepeatedCheck {
  readonly #failure: string
  readonly #log: Logger
  readonly #everyMs: number
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | null = null

  /** @param failure the log message of a failed check. */
  constructor(failure: string, log: Logger, everyMs = CHECK_EVERY_MS) {
    this.#failure = failure
    this.#log = log
    this.#everyMs = everyMs
  }

  protected abstract update(): Promise<void>

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#running !== null) return
      this.check().catch((error: unknown) => this.#log.error({ err: error }, this.#failure))
    }, this.#everyMs)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running?.catch(() => undefined)
  }

  /** Checks now, after a check that is running. */
  check(): Promise<void> {
    const check = (this.#running ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.update())
      .finally(() => {
        if (this.#running === check) this.#running = null
      })
    this.#running = check
    return check
  }
}
