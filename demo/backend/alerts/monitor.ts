import type { Logger } from 'pino'
import type { Publisher } from '../../../src/shared/publisher.js'
import { RepeatedCheck } from '../repeated-check.js'
import type { Database, World } from '../world.js'
import { ALERT_KINDS, DELETE_ENDED, UPDATE_ALERTS, UPDATE_RECEIVERS } from './conditions.js'

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

/** The state of all alerts as one text, which changes with every alert and acknowledgement. */
const STATE = `SELECT coalesce(md5(string_agg(concat_ws('/', id, acknowledged_at), ',' ORDER BY id)), '') AS state
  FROM alerts WHERE ended_at IS NULL`

const COUNTS = `SELECT kind, count(*) FILTER (WHERE a.id IS NOT NULL AND acknowledged_at IS NULL)::int AS open,
    count(*) FILTER (WHERE acknowledged_at IS NOT NULL)::int AS acknowledged
  FROM unnest($1::text[]) WITH ORDINALITY AS kinds (kind, number) LEFT JOIN (SELECT * FROM alerts WHERE ended_at IS NULL) AS a USING (kind)
  GROUP BY kind, number ORDER BY number`

/** The number of alerts of every kind. */
export const alertCounts = ({ database }: Pick<World, 'database'>): Promise<AlertCount[]> =>
  database.rows<AlertCount>(COUNTS, [ALERT_KINDS])

/** Compares the site with the alert conditions every two seconds, and publishes the counts when the alerts change. */
export class AlertMonitor extends RepeatedCheck {
  readonly #parts: AlertMonitorParts
  #published = ''

  constructor(parts: AlertMonitorParts) {
    super('alert check failed', parts.log)
    this.#parts = parts
  }

  protected override async update(): Promise<void> {
    const { database, publisher, now } = this.#parts
    const { state, counts } = await database.transaction(async (statements) => {
      for (const sql of [UPDATE_RECEIVERS, DELETE_ENDED, UPDATE_ALERTS]) await statements.rows(sql, [now()])
      const [row] = await statements.rows<{ state: string }>(STATE)
      return { state: row?.state ?? '', counts: await alertCounts({ database: statements }) }
    })
    if (state === this.#published) return
    this.#published = state
    // Only numbers: every signed-in user receives this channel, and names need a permission.
    void publisher.publish('global:all', { type: 'alerts', data: counts })
  }
}
