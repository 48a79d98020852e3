import type { Clocks } from '../core/clocks.js'
import { type RecentCount, RecentCounts } from './recent-counts.js'

const KEEP_MS = 10 * 60 * 1000

export type Trouble = 'origin' | 'token' | 'key' | 'upgrade'

/** Why clients and publishers do not get through, for the operator's first checks. Costs something only when it happens. */
export class Troubles {
  readonly #kinds: Readonly<Record<Trouble, RecentCounts>>

  constructor(clocks: Clocks) {
    const counts = (): RecentCounts => new RecentCounts(clocks, KEEP_MS)
    this.#kinds = { origin: counts(), token: counts(), key: counts(), upgrade: counts() }
  }

  add(trouble: Trouble, what: string): void {
    this.#kinds[trouble].add(what)
  }

  recent(trouble: Trouble): readonly RecentCount[] {
    return this.#kinds[trouble].recent()
  }
}
