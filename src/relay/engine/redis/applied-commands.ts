/** More than the command log keeps, so that a log that is read again repeats nothing. */
const MAX_KNOWN = 20_000

/** The commands that this node has applied. Each arrives as a message and in the log, and again if its answer was lost. */
export class AppliedCommands<Result> {
  readonly #results = new Map<string, Promise<Result | null>>()

  has(id: string): boolean {
    return this.#results.has(id)
  }

  /** Applies it once, however often it is called. Null means that it failed: the next call tries again. */
  once(id: string, apply: () => Promise<Result | null>): Promise<Result | null> {
    const known = this.#results.get(id)
    if (known !== undefined) return known
    const applying = apply().then((result) => {
      if (result === null) this.#results.delete(id)
      return result
    })
    this.#results.set(id, applying)
    const [oldest] = this.#results.keys()
    if (this.#results.size > MAX_KNOWN && oldest !== undefined) this.#results.delete(oldest)
    return applying
  }
}
