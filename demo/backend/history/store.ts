import type { Statements } from '../world.js'
import type { PathPoint } from './path-recorder.js'

// The tables `position_history`, the paths of the stored days, and `occupancy_history`, the counts of the last day.

export const HOUR_MS = 60 * 60_000
export const DAY_MS = 24 * HOUR_MS
/** The interval of occupancy counts. */
export const COUNT_EVERY_MS = 5 * 60_000

/** Paths are complete for a little longer than an hour. */
const COMPLETE_MS = 65 * 60_000
const KEPT_COUNTS = '24 hours 5 minutes'

/** Small statements, because the embedded database runs in this thread and requests wait for it. */
const POINTS_PER_STATEMENT = 1000

const KINDS = "ARRAY['employee', 'visitor', 'contractor', 'asset']"

export const storePoints = async (database: Statements, points: readonly PathPoint[]): Promise<void> => {
  for (let start = 0; start < points.length; start += POINTS_PER_STATEMENT) {
    const part = points.slice(start, start + POINTS_PER_STATEMENT)
    // The join omits transmitters that were deleted meanwhile.
    await database.rows(
      `INSERT INTO position_history (transmitter_id, floor_id, zone_id, x, y, at)
       SELECT t.id, p."floorId", p."zoneId", p.x, p.y, to_timestamp(p."atMs" / 1000)
       FROM json_to_recordset($1::json) AS p("transmitterId" text, "floorId" text, "zoneId" text, x double precision,
         y double precision, "atMs" double precision) JOIN transmitters t ON t.id = p."transmitterId"`,
      [JSON.stringify(part)]
    )
  }
}

/** The positions of transmitters end at this time, for example when the backend was stopped. */
export const endPaths = async (database: Statements, at: Date): Promise<void> => {
  await database.rows(
    `INSERT INTO position_history (transmitter_id, floor_id, zone_id, x, y, at)
     SELECT transmitter_id, NULL, NULL, x, y, $1 FROM (SELECT DISTINCT ON (transmitter_id) *
       FROM position_history ORDER BY transmitter_id, at DESC) AS last WHERE floor_id IS NOT NULL`,
    [at]
  )
}

/** SQL: the positions of a transmitter between two times, in no order, and the one before, which holds at the start. */
export const storedBetween = (transmitterId: string, from: string, to: string): string =>
  `(SELECT floor_id, zone_id, x, y, at FROM position_history
      WHERE transmitter_id = ${transmitterId} AND at <= ${from} ORDER BY at DESC LIMIT 1)
    UNION ALL SELECT floor_id, zone_id, x, y, at FROM position_history
      WHERE transmitter_id = ${transmitterId} AND at > ${from} AND at <= ${to}
    UNION ALL SELECT floor_id, zone_id, x, y, at FROM positions
      WHERE transmitter_id = ${transmitterId} AND at > ${from} AND at <= ${to}`

/** SQL: the floor or zone of a transmitter at a time; null if it was not heard. */
export const lastPlace = (transmitterId: string, at: string, column: 'floor_id' | 'zone_id'): string =>
  `(SELECT ${column} FROM position_history WHERE transmitter_id = ${transmitterId} AND at <= ${at} ORDER BY at DESC LIMIT 1)`

/** A thinned history keeps one position per zone in each of these intervals. */
const THINNED_MS = 5 * 60_000

/**
 * Thins positions that are older than an hour: of each transmitter, one position per zone and five minutes stays. That is an
 * eighth of them, and every stay in a zone is still known. Begins at `from`, or at the oldest position; returns where it ended.
 */
export const thinHistory = async (database: Statements, from: Date | null, now: Date): Promise<Date> => {
  const until = new Date(Math.floor((now.getTime() - COMPLETE_MS) / THINNED_MS) * THINNED_MS)
  await database.rows(
    `DELETE FROM position_history WHERE ctid = ANY (ARRAY(SELECT ctid FROM (SELECT ctid, row_number() OVER (
         PARTITION BY transmitter_id, floor_id, zone_id, date_bin('${THINNED_MS} milliseconds', at, 'epoch') ORDER BY at) AS number
       FROM position_history WHERE at < $1 AND ($2::timestamptz IS NULL OR at >= $2)) AS numbered WHERE number > 1))`,
    [until, from]
  )
  return until
}

/** The time of the last stored position; null without one. */
export const lastStoredAt = async (database: Statements): Promise<Date | null> => {
  const [row] = await database.rows<{ at: Date | null }>('SELECT max(at) AS at FROM position_history')
  return row?.at ?? null
}

/** Counts the carriers of each kind on each floor, including zeros. The time is rounded down to the interval. */
export const countOccupancy = async (database: Statements, at: Date): Promise<void> => {
  await database.rows(
    `INSERT INTO occupancy_history (floor_id, entity_type, at, carriers)
     SELECT f.id, kind, $1::timestamptz, count(c.transmitter_id)::int
     FROM floors f CROSS JOIN unnest(${KINDS}) AS kind
     LEFT JOIN carriers c ON c.floor_id = f.id AND c.entity_type = kind
     GROUP BY f.id, kind
     ON CONFLICT (at, floor_id, entity_type) DO UPDATE SET carriers = excluded.carriers`,
    [new Date(Math.floor(at.getTime() / COUNT_EVERY_MS) * COUNT_EVERY_MS)]
  )
}

/** A transmitter that was on a floor at the time of a count. */
export interface CountedCarrier {
  readonly atMs: number
  readonly transmitterId: string
  readonly floorId: string
}

/** Stores the counts of past times instead of those that were stored before. */
export const countPastOccupancy = async (database: Statements, counted: readonly CountedCarrier[]): Promise<void> => {
  await database.rows(
    `WITH seen AS (SELECT to_timestamp(c."atMs" / 1000) AS at, c."floorId" AS floor_id, t.entity_type
       FROM json_to_recordset($1::json) AS c("atMs" double precision, "transmitterId" text, "floorId" text)
       JOIN transmitters t ON t.id = c."transmitterId")
     INSERT INTO occupancy_history (floor_id, entity_type, at, carriers)
     SELECT f.id, kind, times.at, count(seen.at)::int
     FROM (SELECT DISTINCT at FROM seen) AS times CROSS JOIN floors f CROSS JOIN unnest(${KINDS}) AS kind
     LEFT JOIN seen ON seen.at = times.at AND seen.floor_id = f.id AND seen.entity_type = kind
     GROUP BY f.id, kind, times.at
     ON CONFLICT (at, floor_id, entity_type) DO UPDATE SET carriers = excluded.carriers`,
    [JSON.stringify(counted)]
  )
}

/** Counts are not personal data; positions are deleted by `RetentionMonitor`. */
export const pruneCounts = async (database: Statements, at: Date): Promise<void> => {
  await database.rows(`DELETE FROM occupancy_history WHERE at < $1::timestamptz - interval '${KEPT_COUNTS}'`, [at])
}
