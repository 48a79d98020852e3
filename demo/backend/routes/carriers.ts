import { bulk, type CrudOptions, changeMany, crud } from '../crud.js'
import { HttpError, invalid, notFound, unknownReference } from '../errors.js'
import { csv } from '../export/csv.js'
import { pdfTable } from '../export/pdf.js'
import { about, exported, list, rows, type Write } from '../queries.js'
import { changeRecords, FREE, freeTransmitters, getRecord, getRecords } from '../records.js'
import { assets, personnel, type Resource, transmitters } from '../resources.js'
import { type Call, type Handlers, handler, idOf, perMinute, type Run } from '../route.js'
import { readSetting } from '../settings.js'
import { removeImage, showImage, storeImage } from '../uploads.js'
import type { Fields, World } from '../world.js'

const BEACONS = `SELECT id, name, mac_address, 'transmitter' AS type, battery_level, status
  FROM transmitters WHERE entity_type = 'employee' AND entity_id = $1
  UNION ALL
  SELECT id, name, mac_address, coalesce(type, 'beacon'), battery_level, status FROM beacons WHERE personnel_id = $1
  ORDER BY id`

const availableTransmitters = {
  ...transmitters,
  from: '(SELECT * FROM transmitters_shown WHERE entity_type IS NULL AND is_active IS NOT FALSE)'
}

/**
 * Assigns a transmitter to a carrier and unassigns the carrier's previous one. Without an entity type, the transmitter
 * becomes available.
 */
const assignTransmitter = async (world: World, id: string, entityType: string | null, entityId: string | null) => {
  const kind = [personnel, assets].find(({ entityTypes }) => entityType && entityTypes.includes(entityType))
  if (kind !== undefined) {
    const [carrier] = await getRecords(world, kind, [entityId ?? ''])
    if (carrier === undefined) throw unknownReference()
    await freeTransmitters(world, kind, [entityId ?? ''])
  }
  const state = entityType === null ? FREE : { status: 'assigned', assignedAt: world.now().toISOString() }
  const [given] = await changeRecords(world, transmitters, [id], { ...state, entity_type: entityType, entityId })
  if (given === undefined) throw unknownReference()
}

const TAKEN = `SELECT entity_type IS NOT NULL OR is_active IS FALSE AS is_taken FROM transmitters
  WHERE id = $1 AND NOT coalesce(entity_type = $2 AND entity_id = $3, false) FOR UPDATE`

/** `transmitterId` in the body of a person or an asset assigns a free transmitter; null unassigns it. */
const carrying =
  (resource: Resource): Required<CrudOptions>['stored'] =>
  async (call, id, { transmitterId }) => {
    const [entityType = null] = resource.entityTypes
    if (transmitterId === null) await freeTransmitters(call, resource, [id])
    if (transmitterId == null) return
    // Locked, so that two concurrent requests cannot both find it free.
    const [other] = await call.database.rows(TAKEN, [String(transmitterId), entityType, id])
    if (other?.isTaken === true)
      throw new HttpError(409, 'TRANSMITTER_TAKEN', 'The transmitter is not available any more. Choose another one.', [
        { path: '/transmitterId', message: 'is not available' }
      ])
    await assignTransmitter(call, String(transmitterId), entityType, id)
  }

/** The carrier that is sent with a transmitter gives its previous transmitter back, so that it is not counted twice. */
const carried: Required<CrudOptions>['stored'] = async (call, id, sent) => {
  if (sent.entity_type === undefined && sent.entityId === undefined) return
  const { entity_type, entityId } = await getRecord(call, transmitters, id)
  if (typeof entity_type === 'string' && typeof entityId === 'string')
    await assignTransmitter(call, id, entity_type, entityId)
}

const assign: Run = async (call) => {
  const { transmitterId, entity_type, entityId, personnelId, assetId } = call.body
  if (transmitterId == null) throw invalid([{ path: '/transmitterId', message: 'is required' }])
  const kind = personnelId != null ? 'employee' : assetId != null ? 'asset' : entity_type
  const carrier = personnelId ?? assetId ?? entityId ?? null
  // The badge of a visitor has a type but no entity. Without a type, the transmitter becomes available.
  const becomesAvailable = typeof kind !== 'string' || entityId === null
  const to = carrier === null || becomesAvailable ? null : String(carrier)
  await assignTransmitter(call, String(transmitterId), becomesAvailable ? null : kind, to)
  return getRecord(call, transmitters, String(transmitterId))
}

/** Derives the full name from first and last name, of which the other one is stored, and the department id from its name. */
const completed = async (call: Call): Promise<Fields> => {
  const { body, database } = call
  const [stored = {}] = await getRecords(call, personnel, [idOf(call)])
  const { firstName, lastName } = { ...stored, ...body }
  const isNamed = body.firstName !== undefined || body.lastName !== undefined
  const fullName = [firstName, lastName].filter((part) => typeof part === 'string' && part !== '').join(' ')
  const name = isNamed && (fullName !== '' || body.name === undefined) ? fullName : body.name
  if (name === '') throw invalid([{ path: '/firstName', message: 'or a last name is needed' }])
  const sql = 'SELECT id FROM departments WHERE lower(name) = lower($1)'
  const isByName = typeof body.department === 'string' && body.departmentId === undefined
  const [known] = isByName ? await database.rows(sql, [String(body.department)]) : []
  return { ...body, ...(name !== undefined && { name }), ...(known && { departmentId: known.id }) }
}

const PDF_COLUMNS = [
  { field: 'name', title: 'Name', width: 0.22 },
  { field: 'jobTitle', title: 'Job title', width: 0.19 },
  { field: 'department', title: 'Department', width: 0.16 },
  { field: 'email', title: 'E-mail', width: 0.3 },
  { field: 'transmitterId', title: 'Transmitter', width: 0.13 }
]
const CSV_FIELDS = [
  ...['id', 'employeeId', 'name', 'firstName', 'lastName', 'email', 'phone', 'department', 'jobTitle', 'badgeNumber'],
  ...['startDate', 'isActive', 'isFirstAider', 'isFireWarden', 'transmitterId']
]
const ASSET_FIELDS = [...['id', 'assetTag', 'name', 'category', 'status', 'departmentId', 'transmitterId']]

const writePdf: Write = async (people, call) => {
  const { organizationName } = await readSetting(call, 'general')
  const title = `${organizationName ?? ''} – Personnel`
  return pdfTable({ title, at: call.now(), columns: PDF_COLUMNS, rows: people })
}

const PHOTOS = { options: { bodyLimit: 2 * 1024 * 1024 }, status: 201 }
const EXPORTS = perMinute(30)

const storePhoto: Run = async (call) => {
  await getRecord(call, personnel, idOf(call))
  await storeImage(call, personnel, 'photo')
  return getRecord(call, personnel, idOf(call))
}

const removePhoto: Run = async (call) => {
  if (!(await removeImage(call, personnel))) throw notFound('photo')
}

/** Personnel, assets and their transmitters. */
export const carrierRoutes: Handlers = {
  ...crud(personnel, { prepare: completed, stored: carrying(personnel) }),
  'GET /api/personnel/:id/beacons': handler('personnel.read', about(personnel, rows(BEACONS, 'id'))),
  'POST /api/personnel/batch-delete': handler('personnel.delete', changeMany(personnel, 'delete')),
  'POST /api/personnel/bulk-activate': handler('personnel.update', changeMany(personnel, 'activate')),
  'POST /api/personnel/bulk-deactivate': handler('personnel.update', changeMany(personnel, 'deactivate')),
  'GET /api/personnel/:id/photo': handler('personnel.read', showImage('photo', personnel)),
  'POST /api/personnel/:id/photo': handler('personnel.update', storePhoto, PHOTOS),
  'DELETE /api/personnel/:id/photo': handler('personnel.update', removePhoto),
  'GET /api/personnel/export/csv': handler(
    'personnel.export',
    exported(personnel, 'personnel.csv', (people) => csv(CSV_FIELDS, people)),
    EXPORTS
  ),
  'GET /api/personnel/export/pdf': handler('personnel.export', exported(personnel, 'personnel.pdf', writePdf), EXPORTS),
  'GET /api/assets/export/csv': handler(
    'assets.export',
    exported(assets, 'assets.csv', (rows) => csv(ASSET_FIELDS, rows)),
    EXPORTS
  ),
  ...crud(assets, { stored: carrying(assets) }),
  ...crud(transmitters, { putReplaces: true, stored: carried }),
  'GET /api/transmitters/unassigned': handler('transmitters.read', list(availableTransmitters)),
  'POST /api/transmitters/assign': handler('transmitters.update', assign),
  'POST /api/transmitters/bulk': handler('transmitters.update', bulk(transmitters, carried))
}
