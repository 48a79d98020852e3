import type { Logger } from 'pino'
import type { Publisher } from '../../../src/shared/publisher.js'
import type { Database, World } from '../world.js'
import { ALERT_KINDS, DELETE_ENDED, UPDATE_ALERTS } from './conditions.js'

export interface AlertMonitorParts extends Pick<World, 'now'> {
  readonly database: Database
  readonly publisher: Pick<Publisher, 'publish'>
  readonly log: Logger
}

export interface AlertCount {
  readonly kind: string
  readonly open: number
  readonly acknowledged: number
}

const CHECK_EVERY_MS = 2000

/** The state of all alerts as one text, which changes with every alert and acknowledgement. */
const STATE = `SELECT coalesce(md5(string_agg(concat(id, acknowledged_at), ',' ORDER BY id)), '') AS state
  FROM alerts WHERE ended_at IS NULL`

const COUNTS = `SELECT kind, count(*) FILTER (WHERE a.id IS NOT NULL AND acknowledged_at IS NULL)::int AS open,
    count(*) FILTER (WHERE acknowledged_at IS NOT NULL)::int AS acknowledged
  FROM unnest($1::text[]) WITH ORDINALITY AS kinds (kind, number) LEFT JOIN (SELECT * FROM alerts WHERE ended_at IS NULL) AS a USING (kind)
  GROUP BY kind, number ORDER BY number`

/** The number of alerts of every kind. */
export const alertCounts = ({ database }: Pick<World, 'database'>): Promise<AlertCount[]> =>
  database.rows<AlertCount>(COUNTS, [ALERT_KINDS])

/** Compares the site with the alert conditions every two seconds, and publishes the counts when the alerts change. */
export class AlertMonitor {
  readonly #parts: AlertMonitorParts
  #published = ''
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | null = null

  constructor(parts: AlertMonitorParts) {
    this.#parts = parts
  }

  start(): void {
    this.#timer = setInterval(() => {
      // A slow database delays the next check instead of queueing checks.
      if (this.#running !== null) return
      this.check().catch((error: unknown) => this.#parts.log.error({ err: error }, 'alert check failed'))
    }, CHECK_EVERY_MS)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running?.catch(() => undefined)
  }

  /** Checks now, after a check that is running. */
  check(): Promise<void> {
    const check = (this.#running ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#update())
      .finally(() => {
        if (this.#running === check) this.#running = null
      })
    this.#running = check
    return check
  }

  async #update(): Promise<void> {
    const { database, publisher, now } = this.#parts
    const { state, counts } = await database.transaction(async (statements) => {
      for (const sql of [DELETE_ENDED, UPDATE_ALERTS]) await statements.rows(sql, [now()])
      const [row] = await statements.rows<{ state: string }>(STATE)
      return { state: row?.state ?? '', counts: await alertCounts({ database: statements }) }
    })
    if (state === this.#published) return
    this.#published = state
    // Only numbers: every signed-in user receives this channel, and names need a permission.
    void publisher.publish('global:all', { type: 'alerts', data: counts })
  }
}
