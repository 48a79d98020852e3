import { assignTransmitter, mustBeFree } from '../assignment.js'
import { concernedBy } from '../audit/changes.js'
import { auditLookup, auditSearch } from '../audit/lookups.js'
import { bulk, type CrudOptions, changedRecord, changeMany, crud } from '../crud.js'
import { invalid } from '../errors.js'
import { FULL_NAME_TOO_LONG, MAX_FULL_NAME } from '../import/full-name.js'
import { about, list, rows } from '../queries.js'
import { freeTransmitters, getRecord, getRecords } from '../records.js'
import { assets, personnel, type Resource, transmitters } from '../resources.js'
import { type Call, type Handlers, handler, idOf, type Run } from '../route.js'
import { recordGuests } from '../visits/guests.js'
import type { Fields } from '../world.js'

const BEACONS = `SELECT id, name, mac_address, 'transmitter' AS type, battery_level, status
  FROM transmitters WHERE entity_type = 'employee' AND entity_id = $1
  UNION ALL
  SELECT id, name, mac_address, coalesce(type, 'beacon'), battery_level, status FROM beacons WHERE personnel_id = $1
  ORDER BY id`

const HISTORY = `SELECT h.at, h.floor_id, h.zone_id, z.name AS zone_name, h.x, h.y
  FROM position_history h JOIN transmitters t ON t.id = h.transmitter_id LEFT JOIN zones z ON z.id = h.zone_id
  WHERE t.entity_type = 'asset' AND t.entity_id = $1 AND h.floor_id IS NOT NULL ORDER BY h.at DESC LIMIT 500`

const availableTransmitters = {
  ...transmitters,
  from: '(SELECT * FROM transmitters_shown WHERE entity_type IS NULL AND is_active IS NOT FALSE)'
}

/** `transmitterId` in the body of a person or an asset assigns a free transmitter; null unassigns it. */
const carrying =
  (resource: Resource): Required<CrudOptions>['stored'] =>
  async (call, id, { transmitterId }) => {
    if (transmitterId === null) await freeTransmitters(call, resource, [id])
    if (transmitterId == null) return
    await mustBeFree(call, String(transmitterId), resource, id)
    await assignTransmitter(call, String(transmitterId), resource.entityTypes[0] ?? null, id)
  }

/** The carrier that is sent with a transmitter gives its previous transmitter back, so that it is not counted twice. */
const carried: Required<CrudOptions>['stored'] = async (call, id, sent) => {
  if (sent.entity_type === undefined && sent.entityId === undefined) return
  const { entity_type, entityId } = await getRecord(call, transmitters, id)
  if (typeof entity_type === 'string' && typeof entityId === 'string')
    await assignTransmitter(call, id, entity_type, entityId)
  await recordGuests(call)
}

const assign: Run = async (call) => {
  const { transmitterId, entity_type, entityId, personnelId, assetId } = call.body
  if (transmitterId == null) throw invalid([{ path: '/transmitterId', message: 'is required' }])
  const kind = personnelId != null ? 'employee' : assetId != null ? 'asset' : entity_type
  const carrier = personnelId ?? assetId ?? entityId ?? null
  // The badge of a visitor without a record has a type but no entity. Without a type, the transmitter becomes available.
  const becomesAvailable = typeof kind !== 'string' || entityId === null
  const to = carrier === null || becomesAvailable ? null : String(carrier)
  await assignTransmitter(call, String(transmitterId), becomesAvailable ? null : kind, to)
  await recordGuests(call)
  return changedRecord(call, transmitters, String(transmitterId))
}

/** The full name after a change of the first or last name; the other one is stored. Null if neither is sent. */
const newName = async (call: Call): Promise<string | null> => {
  const { body } = call
  if (body.firstName === undefined && body.lastName === undefined) return null
  const [stored = {}] = await getRecords(call, personnel, [idOf(call)])
  const { firstName, lastName } = { ...stored, ...body }
  const name = [firstName, lastName].filter((part) => typeof part === 'string' && part !== '').join(' ')
  const isRemoved = name === '' && (stored.firstName || stored.lastName) && !body.name
  return isRemoved ? '' : name || null
}

/** Derives the full name from first and last name, and the department id from its name. */
const completed = async (call: Call): Promise<Fields> => {
  const { body, database } = call
  const { department, departmentId } = body
  const name = await newName(call)
  if (name === '' || (name === null && body.name === ''))
    throw invalid([{ path: '/firstName', message: 'or a last name is needed' }])
  if (name !== null && name.length > MAX_FULL_NAME) throw invalid([{ path: '/lastName', message: FULL_NAME_TOO_LONG }])
  const [known] =
    typeof department === 'string' && departmentId === undefined
      ? await database.rows('SELECT id FROM departments WHERE lower(name) = lower($1)', [department])
      : []
  return { ...(name !== null && { name }), ...body, ...(known && { departmentId: known.id }) }
}

const readPerson: Run = async (call) => {
  const row = await getRecord(call, personnel, idOf(call))
  const person = row.currentFloorId == null ? null : concernedBy(personnel, row)
  if (person !== null) await auditLookup(call, 'card', [person])
  return row
}

/** Personnel, assets and their transmitters. */
export const carrierRoutes: Handlers = {
  ...crud(personnel, { prepare: completed, stored: carrying(personnel) }),
  'GET /api/personnel': handler('personnel.read', list(personnel, auditSearch(personnel))),
  'GET /api/personnel/:id': handler('personnel.read', readPerson),
  'GET /api/personnel/:id/beacons': handler('personnel.read', about(personnel, rows(BEACONS, 'id'))),
  'POST /api/personnel/batch-delete': handler('personnel.delete', changeMany(personnel, 'delete')),
  'POST /api/personnel/bulk-activate': handler('personnel.update', changeMany(personnel, 'activate')),
  'POST /api/personnel/bulk-deactivate': handler('personnel.update', changeMany(personnel, 'deactivate')),
  ...crud(assets, { stored: carrying(assets) }),
  'GET /api/assets/:id/history': handler('assets.read', about(assets, rows(HISTORY, 'id'))),
  ...crud(transmitters, { putReplaces: true, stored: carried }),
  'GET /api/transmitters': handler('transmitters.read', list(transmitters, auditSearch(transmitters))),
  'GET /api/transmitters/unassigned': handler('transmitters.read', list(availableTransmitters)),
  'POST /api/transmitters/assign': handler('transmitters.update', assign),
  'POST /api/transmitters/bulk': handler('transmitters.update', bulk(transmitters, carried))
}
