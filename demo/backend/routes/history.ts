import { carrierOf } from '../audit/changes.js'
import type { CarrierRow } from '../audit/entry.js'
import { auditLookup, auditPlace } from '../audit/lookups.js'
import { notFound } from '../errors.js'
import { checkFloorAccess } from '../floor-access.js'
import { type Sighting, staysOf } from '../history/stays.js'
import { DAY_MS, HOUR_MS, lastPlace, storedBetween } from '../history/store.js'
import { heatMapOf, type StoredPoint, type Track, tracksOf } from '../history/tracks.js'
import { list, momentOf, type Range, rangeOf, textOf } from '../queries.js'
import { getRecord } from '../records.js'
import { floors, transmitters, zones } from '../resources.js'
import { type Call, callerOf, type Handlers, handler, idOf, perMinute, type Run } from '../route.js'
import type { Fields } from '../world.js'

const EXPENSIVE = perMinute(120)

const positionHistory = {
  from: '(SELECT * FROM position_history WHERE floor_id IS NOT NULL)',
  fields: ['transmitterId', 'floorId', 'zoneId', 'at'],
  order: 'at DESC, transmitter_id'
}

/**
 * One row per transmitter that was on the floor. The first point may be before the range, so that the path begins at its
 * start; the last one is the current position, because the newest positions are stored later. The first point elsewhere after
 * one on the floor tells when the transmitter left.
 */
const PATHS = `SELECT t.id AS transmitter_id, json_agg(json_build_array(
      round(extract(epoch FROM h.at - $2::timestamptz) * 1000), h.x, h.y, h.zone_id, h.is_here) ORDER BY h.at) AS points
  FROM transmitters t CROSS JOIN LATERAL (
    SELECT x, y, zone_id, at, floor_id IS NOT DISTINCT FROM $1 AS is_here,
      lag(floor_id) OVER (ORDER BY at) IS NOT DISTINCT FROM $1 AS was_here
    FROM (${storedBetween('t.id', '$2', '$3')}) AS stored) AS h
  WHERE (h.is_here OR h.was_here) AND (NOT $4::boolean OR t.entity_type <> 'asset') AND ($5::text IS NULL OR t.id = $5)
    AND (t.id IN (SELECT transmitter_id FROM position_history WHERE floor_id = $1 AND at > $2 AND at <= $3)
      OR ${lastPlace('t.id', '$2', 'floor_id')} = $1)
  GROUP BY 1 ORDER BY 1`

interface TracksOptions {
  readonly onlyPeople: boolean
  /** Null for all transmitters. */
  readonly transmitterId: string | null
}

const readTracks = async (
  { database, now }: Call,
  floorId: string,
  { from, to }: Range,
  { onlyPeople, transmitterId }: TracksOptions
): Promise<Track[]> => {
  const values = [floorId, from, to, onlyPeople, transmitterId]
  const paths = await database.rows<{ transmitterId: string; points: StoredPoint[] }>(PATHS, values)
  const endMs = Math.min(to.getTime(), now().getTime()) - from.getTime()
  return paths.flatMap((path) => tracksOf(path.transmitterId, path.points, endMs))
}

const showTracks: Run = async (call) => {
  const floor = await getRecord(call, floors, idOf(call))
  checkFloorAccess(floor, callerOf(call))
  const range = rangeOf(call, HOUR_MS)
  const transmitterId = textOf(call.query, 'transmitterId')
  if (transmitterId === null) await auditPlace(call, 'floor', floor)
  else await auditCarriers(call, [transmitterId])
  return { ...range, tracks: await readTracks(call, idOf(call), range, { onlyPeople: false, transmitterId }) }
}

const showHeatMap: Run = async (call) => {
  const floor = await getRecord(call, floors, idOf(call))
  checkFloorAccess(floor, callerOf(call))
  const range = rangeOf(call, HOUR_MS)
  const tracks = await readTracks(call, idOf(call), range, { onlyPeople: true, transmitterId: null })
  // A floor without a size has no cells.
  const size = { width: Number(floor.width ?? 0), height: Number(floor.height ?? 0) }
  return { ...range, ...heatMapOf(tracks, size, range.to.getTime() - range.from.getTime()) }
}

const CARRIER = `SELECT c.transmitter_id, c.badge, c.entity_type AS "entityType", c.entity_id, coalesce(c.name, c.badge) AS name,
    coalesce(e.job_title, a.category) AS role, c.department, c.company, c.host, e.is_first_aider, e.is_fire_warden, t.battery_level,
    c.floor_id, f.name AS floor_name, b.name AS building_name, c.zone_id, c.zone_name, c.at, c.accuracy,
    e.photo_url || '?v=' || extract(epoch FROM p.updated_at)::bigint AS photo_url
  FROM carriers c JOIN transmitters t ON t.id = c.transmitter_id
  LEFT JOIN personnel_shown e ON c.entity_type = 'employee' AND e.id = c.entity_id
  LEFT JOIN assets a ON c.entity_type = 'asset' AND a.id = c.entity_id
  LEFT JOIN files p ON p.owner = 'personnel/' || e.id
  LEFT JOIN floors f ON f.id = c.floor_id LEFT JOIN buildings b ON b.id = f.building_id
  WHERE c.transmitter_id = $1`

const SIGHTINGS = `SELECT h.floor_id, f.name AS floor_name, b.name AS building_name, h.zone_id, z.name AS zone_name,
    round(extract(epoch FROM greatest(h.at, $2)) * 1000)::float AS at_ms
  FROM (${storedBetween('$1', '$2', '$3')}) AS h LEFT JOIN floors f ON f.id = h.floor_id
  LEFT JOIN buildings b ON b.id = f.building_id LEFT JOIN zones z ON z.id = h.zone_id ORDER BY h.at`

const CARRIED = `SELECT transmitter_id, entity_type AS "entityType", entity_id, coalesce(name, badge) AS name
  FROM carriers WHERE transmitter_id = ANY($1::text[])`

/** The audit log names the people whose past positions were requested. */
const auditCarriers = async (call: Call, transmitterIds: readonly string[]): Promise<void> => {
  const carriers = await call.database.rows<CarrierRow>(CARRIED, [transmitterIds])
  const people = carriers.flatMap((carrier) => carrierOf(carrier) ?? [])
  await auditLookup(call, 'history', people)
}

const auditPositions = (call: Call, found: readonly Fields[]): Promise<void> =>
  auditCarriers(call, [...new Set(found.map(({ transmitterId }) => String(transmitterId)))])

/** A person or an asset, now or at the time `at`: the place is then the stored one, and its accuracy is not known. */
const showCarrier: Run = async (call) => {
  const { database, now, query } = call
  const id = idOf(call)
  const [current] = await database.rows<Fields & CarrierRow>(CARRIER, [id])
  if (current === undefined) throw notFound(transmitters.noun)
  const person = carrierOf(current)
  if (person !== null) await auditLookup(call, 'card', [person])
  const at = momentOf(query, 'at')
  const to = at ?? now()
  const from = new Date(to.getTime() - HOUR_MS)
  const sightings = await database.rows<Sighting>(SIGHTINGS, [id, from, to])
  const { atMs, ...place } = sightings.at(-1) ?? NOWHERE
  const carrier = at === null ? current : { ...current, ...place, at: new Date(atMs), accuracy: null }
  const stays = staysOf(sightings, to.getTime())
  const [last] = stays
  const isHere = last !== undefined && last.floorId === carrier.floorId && last.zoneId === carrier.zoneId
  // Null if the stay began before the hour.
  const since = isHere && last.fromMs > from.getTime() ? last.fromMs : null
  return { ...carrier, since, stays }
}

const NOWHERE: Sighting = {
  floorId: null,
  floorName: null,
  buildingName: null,
  zoneId: null,
  zoneName: null,
  atMs: 0
}

/** One row per floor, with the count of people by time in milliseconds. */
const OCCUPANCY = `SELECT f.id AS floor_id, f.name AS floor_name, b.id AS building_id, b.name AS building_name,
    json_object_agg(round(extract(epoch FROM o.at) * 1000)::bigint, o.people) AS counts
  FROM (SELECT floor_id, at, sum(carriers) AS people FROM occupancy_history
    WHERE at BETWEEN $1 AND $2 AND entity_type <> 'asset' GROUP BY 1, 2) AS o
  JOIN floors f ON f.id = o.floor_id JOIN buildings b ON b.id = f.building_id
  GROUP BY f.id, b.id ORDER BY b.display_order, f.level, f.id`

/** The number of people on each floor over time, as columns for a chart. */
const showOccupancy: Run = async (call) => {
  const range = rangeOf(call, DAY_MS)
  const found = await call.database.rows<Fields & { counts: Readonly<Record<string, number>> }>(OCCUPANCY, [
    range.from,
    range.to
  ])
  const times = new Set(found.flatMap(({ counts }) => Object.keys(counts).map(Number)))
  const at = [...times].sort((one, other) => one - other)
  // Null before the floor was created.
  const columns = found.map(({ counts, ...floor }) => ({ ...floor, people: at.map((ms) => counts[ms] ?? null) }))
  return { ...range, at, floors: columns }
}

/** The people on each floor at a time of the stored days. */
const PEOPLE = `SELECT floor_id, count(*)::int AS people
  FROM (SELECT ${lastPlace('t.id', '$1', 'floor_id')} AS floor_id FROM transmitters t
    WHERE t.entity_type IS NOT NULL AND t.entity_type <> 'asset') AS last
  WHERE floor_id IS NOT NULL GROUP BY floor_id ORDER BY floor_id`

const showPeople: Run = (call) => call.database.rows(PEOPLE, [momentOf(call.query, 'at') ?? call.now()])

/** A day with the change to winter time. */
const LONGEST_DAY_MS = 25 * HOUR_MS

/**
 * The people who were in a zone. Whether a person is there now follows from the last position, also of a transmitter that is
 * silent since; at a past time, from the stored position.
 */
const ZONE_PEOPLE = `SELECT c.transmitter_id, coalesce(c.name, c.badge, c.transmitter_id) AS name,
    c.entity_type AS "entityType", c.is_first_aider,
    CASE WHEN $5::boolean THEN coalesce(c.zone_id = $1, false) ELSE coalesce(bool_or(h.until IS NULL), false) END AS is_here,
    CASE WHEN $5::boolean AND c.zone_id = $1 THEN c.at ELSE max(least(coalesce(h.until, $3), $3)) END AS last_at,
    min(greatest(h.at, $2)) AS first_at,
    coalesce(sum(extract(epoch FROM least(coalesce(h.until, $3), $3) - greatest(h.at, $2))), 0)::int AS seconds
  FROM carriers c LEFT JOIN LATERAL (SELECT zone_id, at, lead(at) OVER (ORDER BY at) AS until
    FROM (${storedBetween('c.transmitter_id', '$2', '$3')}) AS stored) AS h ON h.zone_id = $1
  WHERE c.entity_type <> 'asset' AND (($5::boolean AND c.zone_id = $1)
    OR c.transmitter_id IN (SELECT transmitter_id FROM position_history WHERE floor_id = $4 AND zone_id = $1 AND at > $2 AND at <= $3)
    OR ${lastPlace('c.transmitter_id', '$2', 'zone_id')} = $1)
  GROUP BY c.transmitter_id, c.name, c.badge, c.entity_type, c.is_first_aider, c.zone_id, c.at ORDER BY 2, 1`

const showZone: Run = async (call) => {
  const zone = await getRecord(call, zones, idOf(call))
  const { id, name, floorId } = zone
  if (typeof floorId === 'string') checkFloorAccess(await getRecord(call, floors, floorId), callerOf(call))
  const range = rangeOf(call, LONGEST_DAY_MS)
  const isNow = textOf(call.query, 'to') === null
  const place = typeof floorId === 'string' ? floorId : null
  await auditPlace(call, 'zone', zone)
  const people = await call.database.rows(ZONE_PEOPLE, [String(id), range.from, range.to, place, isNow])
  return { ...range, id, name, people }
}

/** The positions of the stored days, and the occupancy of the last day. */
export const historyRoutes: Handlers = {
  'GET /api/positions/history': handler('positions.read', list(positionHistory, auditPositions)),
  'GET /api/positions/tracks/:floorId': handler('positions.read', showTracks, EXPENSIVE),
  'GET /api/positions/heat/:floorId': handler('positions.read', showHeatMap, EXPENSIVE),
  'GET /api/positions/carrier/:id': handler('positions.read', showCarrier),
  'GET /api/positions/zone/:id': handler('positions.read', showZone, EXPENSIVE),
  'GET /api/positions/people': handler('positions.read', showPeople, EXPENSIVE),
  'GET /api/positions/occupancy': handler('positions.read', showOccupancy)
}
