import type { Logger } from 'pino'
import { RepeatedCheck } from '../repeated-check.js'
import { readPrivacy } from '../settings.js'
import type { World } from '../world.js'
import { DAY_MS, HOUR_MS } from './store.js'

/** A thinned day of positions takes about 50 MB of memory. */
export const EMBEDDED_POSITION_HOURS = 7 * 24

const CHECK_EVERY_MS = 60_000
/** Small statements, because the embedded database runs in this thread and requests wait for it. */
const ROWS_PER_STATEMENT = 5000
/** After the retention time was shortened, the rest is deleted by the next checks. */
const STATEMENTS_PER_CHECK = 50

/** Notifications have the names of people. */
const DELIVERY_DAYS = 30

/** Deletes positions and audit entries after the time in the privacy settings, and the record of deliveries after 30 days. */
export class RetentionMonitor extends RepeatedCheck {
  readonly #world: Pick<World, 'database' | 'now'>
  readonly #maxPositionHours: number | null
  readonly #log: Logger

  constructor(world: Pick<World, 'database' | 'now'>, maxPositionHours: number | null, log: Logger) {
    super('deletion of old data failed', log, CHECK_EVERY_MS)
    this.#world = world
    this.#maxPositionHours = maxPositionHours
    this.#log = log
  }

  protected override async update(): Promise<void> {
    const { positionHistoryDays, auditDays } = await readPrivacy(this.#world)
    const maxPositionMs = (this.#maxPositionHours ?? Number.POSITIVE_INFINITY) * HOUR_MS
    await this.#deleteOlder('position_history', Math.min(positionHistoryDays * DAY_MS, maxPositionMs))
    await this.#deleteOlder('audit_log', auditDays * DAY_MS)
    await this.#deleteOlder('deliveries', DELIVERY_DAYS * DAY_MS)
  }

  async #deleteOlder(table: string, ageMs: number): Promise<void> {
    const before = new Date(this.#world.now().getTime() - ageMs)
    const sql = `WITH old AS (DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE at < $1 ORDER BY at LIMIT ${ROWS_PER_STATEMENT})) RETURNING 1)
      SELECT count(*)::int AS rows FROM old`
    let total = 0
    for (let statements = 0; statements < STATEMENTS_PER_CHECK; statements += 1) {
      const [deleted] = await this.#world.database.rows<{ rows: number }>(sql, [before])
      total += deleted?.rows ?? 0
      if ((deleted?.rows ?? 0) < ROWS_PER_STATEMENT) break
    }
    if (total > 0) this.#log.info({ table, before, rows: total }, 'deleted old data')
  }
}
