import { type Clocks, wallTimeOf } from '../core/clocks.js'

/** A stranger can send any text: so many are told apart, and cut where they are long. */
const MAX_ENTRIES = 50
const MAX_LENGTH = 200

export interface RecentCount {
  readonly what: string
  readonly count: number
  /** In milliseconds since 1970. */
  readonly lastAt: number
}

/** How often things went wrong lately, by what it was. What has not come back for a while is forgotten. */
export class RecentCounts {
  readonly #clocks: Clocks
  readonly #keepMs: number
  /** `lastAt` is on the monotonic clock. */
  readonly #entries = new Map<string, { count: number; lastAt: number }>()

  constructor(clocks: Clocks, keepMs: number) {
    this.#clocks = clocks
    this.#keepMs = keepMs
  }

  add(what: string): void {
    const key = what.slice(0, MAX_LENGTH)
    const lastAt = this.#clocks.monotonicMs()
    const known = this.#entries.get(key)
    if (known !== undefined && !this.#isOld(known.lastAt)) {
      known.count++
      known.lastAt = lastAt
      return
    }
    if (known === undefined && this.#entries.size >= MAX_ENTRIES) this.#makeRoom()
    this.#entries.set(key, { count: 1, lastAt })
  }

  /** The most frequent first. */
  recent(): readonly RecentCount[] {
    for (const [what, { lastAt }] of this.#entries) if (this.#isOld(lastAt)) this.#entries.delete(what)
    return [...this.#entries]
      .map(([what, { count, lastAt }]) => ({ what, count, lastAt: wallTimeOf(lastAt, this.#clocks) }))
      .sort((left, right) => right.count - left.count)
  }

  #isOld(lastAt: number): boolean {
    return this.#clocks.monotonicMs() - lastAt >= this.#keepMs
  }

  /** What is made up comes once; what is really wrong comes again and stays. */
  #makeRoom(): void {
    let rarest = ''
    let least = Number.POSITIVE_INFINITY
    for (const [what, { count }] of this.#entries) {
      if (count >= least) continue
      least = count
      rarest = what
    }
    this.#entries.delete(rarest)
  }
}
