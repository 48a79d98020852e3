import { pick, type Random } from '../random.js'
import type { Statements } from '../world.js'

const CHANGES = 0.15
const FAILING = { least: 3, most: 7 } as const

/**
 * Stores that receivers have reported. Now and then, one of them fails and reports no longer, or another one recovers. The
 * status follows from the time of the last report and the settings.
 */
export class ReceiverReports {
  readonly #random: Random
  /** Null until the first report: receivers that are offline at the start have failed. */
  #failing: ReadonlySet<string> | null = null

  constructor(random: Random) {
    this.#random = random
  }

  async store(database: Statements, at: Date): Promise<void> {
    const receivers = await database.rows<{ id: string; status: string | null }>(
      'SELECT id, status FROM receivers WHERE is_active IS NOT FALSE ORDER BY id'
    )
    const ids = receivers.map(({ id }) => id)
    const offline = receivers.filter(({ status }) => status === 'offline').map(({ id }) => id)
    const before = this.#failing ?? new Set(offline)
    const failing = ids.filter((id) => before.has(id))
    this.#failing = new Set(this.#random() < CHANGES ? this.#changed(ids, failing) : failing)
    await database.rows(
      'UPDATE receivers SET last_seen_at = $1 WHERE is_active IS NOT FALSE AND id <> ALL($2::text[])',
      [at, [...this.#failing]]
    )
  }

  #changed(ids: readonly string[], failing: readonly string[]): readonly string[] {
    const recovers = failing.length > FAILING.least && (failing.length >= FAILING.most || this.#random() < 0.5)
    const from = recovers ? failing : ids.filter((id) => !failing.includes(id))
    if (from.length === 0) return failing
    const chosen = pick(this.#random, from)
    return recovers ? failing.filter((id) => id !== chosen) : [...failing, chosen]
  }
}
