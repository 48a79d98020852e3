import { HISTORY_MS } from '../positions/history.js'
import { listOf, momentOf, oneRow, rangeOf, textOf } from '../queries.js'
import { getRecord } from '../records.js'
import { assets, floors, transmitters } from '../resources.js'
import { type Call, type Handlers, handler, idOf, perMinute, type Run } from '../route.js'
import type { Fields } from '../world.js'

const EXPENSIVE = perMinute(120)

/** Where these transmitters were heard, the newest first. */
const heard = ({ history }: Call, transmitterIds: readonly string[], from = 0, to = Number.MAX_VALUE): Fields[] =>
  transmitterIds
    .flatMap((transmitterId) => history.pathOf(transmitterId).map((point) => ({ transmitterId, ...point })))
    .filter(({ floorId, atMs }) => floorId !== null && atMs >= from && atMs <= to)
    .sort((one, other) => other.atMs - one.atMs)
    .map(({ atMs, ...point }) => ({ ...point, at: new Date(atMs).toISOString() }))

/** `?from=` and `?to=` limit the time. */
const showHistory: Run = (call) => {
  const id = textOf(call.query, 'transmitterId')
  const [from, to] = ['from', 'to'].map((name) => momentOf(call.query, name)?.getTime())
  const found = heard(call, id === null ? call.history.transmitterIds() : [id], from, to)
  return listOf(call, ['transmitterId', 'floorId', 'zoneId'], found)
}

const MAX_OF_ASSET = 500

const showAsset: Run = async (call) => {
  await getRecord(call, assets, idOf(call))
  const sql = "SELECT id FROM transmitters WHERE entity_type = 'asset' AND entity_id = $1"
  const carried = await call.database.rows<{ id: string }>(sql, [idOf(call)])
  const zones = await call.database.rows<{ id: string; name: string }>('SELECT id, name FROM zones')
  const nameOf = new Map(zones.map(({ id, name }) => [id, name]))
  const found = heard(
    call,
    carried.map(({ id }) => id)
  )
  return found.slice(0, MAX_OF_ASSET).map((row) => ({ ...row, zoneName: nameOf.get(String(row.zoneId)) ?? null }))
}

const showTracks: Run = async (call) => {
  await getRecord(call, floors, idOf(call))
  const { from, to } = rangeOf(call, HISTORY_MS)
  const transmitterId = textOf(call.query, 'transmitterId')
  const endMs = Math.min(to.getTime(), call.now().getTime())
  const tracks = call.history.tracks(idOf(call), from.getTime(), endMs)
  const wanted = tracks.filter((track) => transmitterId === null || track.transmitterId === transmitterId)
  return { from, to, tracks: wanted }
}

const CARRIER = `SELECT c.transmitter_id, c.badge, c.entity_type AS "entityType", c.entity_id, coalesce(c.name, c.badge) AS name,
    coalesce(e.job_title, a.category) AS role, c.department, c.company, e.is_first_aider, e.is_fire_warden, t.battery_level,
    c.floor_id, f.name AS floor_name, b.name AS building_name, c.zone_id, c.zone_name, c.at, c.accuracy,
    e.photo_url || '?v=' || extract(epoch FROM p.updated_at)::bigint AS photo_url
  FROM carriers c JOIN transmitters t ON t.id = c.transmitter_id
  LEFT JOIN personnel_shown e ON c.entity_type = 'employee' AND e.id = c.entity_id
  LEFT JOIN assets a ON c.entity_type = 'asset' AND a.id = c.entity_id
  LEFT JOIN files p ON p.owner = 'personnel/' || e.id
  LEFT JOIN floors f ON f.id = c.floor_id LEFT JOIN buildings b ON b.id = f.building_id
  WHERE c.transmitter_id = $1`

const COUNT_EVERY_MS = 30_000

const FLOORS = `SELECT f.id AS floor_id, f.name AS floor_name, b.id AS building_id, b.name AS building_name
  FROM floors f JOIN buildings b ON b.id = f.building_id ORDER BY b.display_order, f.level, f.id`

const PEOPLE = "SELECT transmitter_id AS id FROM carriers WHERE entity_type <> 'asset'"

/** The number of people on each floor over time, as columns for a chart. */
const showOccupancy: Run = async (call) => {
  const { from, to } = rangeOf(call, HISTORY_MS)
  const rows = await call.database.rows<Fields & { floorId: string }>(FLOORS)
  const people = await call.database.rows<{ id: string }>(PEOPLE)
  const at: number[] = []
  const endMs = Math.min(to.getTime(), call.now().getTime())
  for (let ms = Math.ceil(from.getTime() / COUNT_EVERY_MS) * COUNT_EVERY_MS; ms <= endMs; ms += COUNT_EVERY_MS)
    at.push(ms)
  const columns = at.map((ms) => {
    const counts = new Map<string | null, number>()
    for (const { id } of people) {
      const floorId = call.history.floorAt(id, ms)
      counts.set(floorId, (counts.get(floorId) ?? 0) + 1)
    }
    return counts
  })
  return {
    from,
    to,
    at,
    floors: rows.map((row) => ({ ...row, people: columns.map((one) => one.get(row.floorId) ?? 0) }))
  }
}

/** The positions of the last 15 minutes. */
export const positionRoutes: Handlers = {
  'GET /api/positions/history': handler('positions.read', showHistory),
  'GET /api/assets/:id/history': handler('assets.read', showAsset),
  'GET /api/positions/tracks/:floorId': handler('positions.read', showTracks, EXPENSIVE),
  'GET /api/positions/carrier/:id': handler('positions.read', oneRow(transmitters.noun, CARRIER, 'id')),
  'GET /api/positions/occupancy': handler('positions.read', showOccupancy)
}
