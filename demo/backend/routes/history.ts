import { notFound } from '../errors.js'
import { checkFloorAccess } from '../floor-access.js'
import { type Sighting, staysOf } from '../history/stays.js'
import { DAY_MS, HOUR_MS } from '../history/store.js'
import { heatMapOf, MAX_GAP_MS, type Track, type TrackPoint, tracksOf } from '../history/tracks.js'
import { list, type Range, rangeOf } from '../queries.js'
import { getRecord } from '../records.js'
import { floors, transmitters } from '../resources.js'
import { type Call, callerOf, type Handlers, handler, idOf, perMinute, type Run } from '../route.js'
import type { Fields } from '../world.js'

const EXPENSIVE = perMinute(120)

const positionHistory = {
  from: 'position_history',
  fields: ['transmitterId', 'floorId', 'zoneId', 'at'],
  order: 'at DESC, transmitter_id'
}

/**
 * One row per transmitter. The first point may be before the range, so that the path begins at its start; the last one is the
 * current position, because the newest positions are stored later.
 */
const PATHS = `SELECT h.transmitter_id, json_agg(json_build_array(
      round(extract(epoch FROM h.at - $2::timestamptz) * 1000), h.x, h.y, h.zone_id) ORDER BY h.at) AS points
  FROM (SELECT transmitter_id, floor_id, zone_id, x, y, at FROM position_history
    UNION SELECT transmitter_id, floor_id, zone_id, x, y, at FROM positions) AS h
  JOIN transmitters t ON t.id = h.transmitter_id
  WHERE h.floor_id = $1 AND h.at BETWEEN $2::timestamptz - interval '${MAX_GAP_MS} milliseconds' AND $3
    AND (NOT $4::boolean OR t.entity_type <> 'asset')
  GROUP BY 1 ORDER BY 1`

const readTracks = async (
  { database }: Call,
  floorId: string,
  { from, to }: Range,
  onlyPeople: boolean
): Promise<Track[]> => {
  const paths = await database.rows<{ transmitterId: string; points: TrackPoint[] }>(PATHS, [
    floorId,
    from,
    to,
    onlyPeople
  ])
  return paths.flatMap(({ transmitterId, points }) => tracksOf(transmitterId, points))
}

const showTracks: Run = async (call) => {
  checkFloorAccess(await getRecord(call, floors, idOf(call)), callerOf(call))
  const range = rangeOf(call, HOUR_MS)
  return { ...range, tracks: await readTracks(call, idOf(call), range, false) }
}

const showHeatMap: Run = async (call) => {
  const floor = await getRecord(call, floors, idOf(call))
  checkFloorAccess(floor, callerOf(call))
  const range = rangeOf(call, HOUR_MS)
  const tracks = await readTracks(call, idOf(call), range, true)
  // A floor without a size has no cells.
  const size = { width: Number(floor.width ?? 0), height: Number(floor.height ?? 0) }
  return { ...range, ...heatMapOf(tracks, size, range.to.getTime() - range.from.getTime()) }
}

const CARRIER = `SELECT c.transmitter_id, c.badge, c.entity_type AS "entityType", c.entity_id, coalesce(c.name, c.badge) AS name,
    coalesce(e.job_title, a.category) AS role, c.department, c.company, c.host, e.is_first_aider, e.is_fire_warden, t.battery_level,
    c.floor_id, f.name AS floor_name, b.name AS building_name, c.zone_id, c.zone_name, c.at,
    e.photo_url || '?v=' || extract(epoch FROM p.updated_at)::bigint AS photo_url
  FROM carriers c JOIN transmitters t ON t.id = c.transmitter_id
  LEFT JOIN personnel_shown e ON c.entity_type = 'employee' AND e.id = c.entity_id
  LEFT JOIN assets a ON c.entity_type = 'asset' AND a.id = c.entity_id
  LEFT JOIN files p ON p.owner = 'personnel/' || e.id
  LEFT JOIN floors f ON f.id = c.floor_id LEFT JOIN buildings b ON b.id = f.building_id
  WHERE c.transmitter_id = $1`

const SIGHTINGS = `SELECT h.floor_id, f.name AS floor_name, h.zone_id, z.name AS zone_name,
    round(extract(epoch FROM h.at) * 1000)::float AS at_ms
  FROM position_history h LEFT JOIN floors f ON f.id = h.floor_id LEFT JOIN zones z ON z.id = h.zone_id
  WHERE h.transmitter_id = $1 AND h.at > $2 ORDER BY h.at`

const showCarrier: Run = async (call) => {
  const { database, now } = call
  const id = idOf(call)
  const [carrier] = await database.rows(CARRIER, [id])
  if (carrier === undefined) throw notFound(transmitters.noun)
  const from = new Date(now().getTime() - HOUR_MS)
  const sightings = await database.rows<Sighting>(SIGHTINGS, [id, from])
  const stays = staysOf(sightings)
  const [last] = stays
  const isHere = last !== undefined && last.floorId === carrier.floorId && last.zoneId === carrier.zoneId
  // Null if the stay began before the stored hour.
  const since = isHere && last.fromMs - from.getTime() > MAX_GAP_MS ? last.fromMs : null
  return { ...carrier, since, stays }
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

/** The positions of the last hour, and the occupancy of the last day. */
export const historyRoutes: Handlers = {
  'GET /api/positions/history': handler('positions.read', list(positionHistory)),
  'GET /api/positions/tracks/:floorId': handler('positions.read', showTracks, EXPENSIVE),
  'GET /api/positions/heat/:floorId': handler('positions.read', showHeatMap, EXPENSIVE),
  'GET /api/positions/carrier/:id': handler('positions.read', showCarrier),
  'GET /api/positions/occupancy': handler('positions.read', showOccupancy)
}
