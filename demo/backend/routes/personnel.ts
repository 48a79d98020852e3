import { changeMany, crud } from '../crud.js'
import { invalid, notFound } from '../errors.js'
import { csv } from '../export/csv.js'
import { pdfTable } from '../export/pdf.js'
import { exported } from '../lists.js'
import { about, rows } from '../queries.js'
import { personnel } from '../resources.js'
import { type Call, type Handlers, handler, idOf, idsIn, type Run } from '../route.js'
import { removeImages, storedImage, storeImage } from '../uploads.js'
import type { Fields } from '../world.js'
import { carrying } from './things.js'

const MAX_PHOTO_BYTES = 2 * 1024 * 1024
const EXPORTS = { perMinute: 30 }

const CSV_FIELDS = (
  'id employeeId firstName lastName email phone jobTitle department buildingId floorId transmitterId startDate ' +
  'isActive isFirstAider isFireWarden notes'
).split(' ')

const PDF_COLUMNS = [
  { field: 'name', title: 'Name', width: 28 },
  { field: 'jobTitle', title: 'Job title', width: 28 },
  { field: 'department', title: 'Department', width: 24 },
  { field: 'email', title: 'E-mail', width: 44 },
  { field: 'transmitterId', title: 'Transmitter', width: 14 }
]

const BEACONS = `SELECT id, name, mac_address, 'transmitter' AS type, battery_level, status
  FROM transmitters WHERE entity_type = 'employee' AND entity_id = $1
  UNION ALL
  SELECT id, name, mac_address, coalesce(type, 'beacon'), battery_level, status FROM beacons WHERE personnel_id = $1
  ORDER BY id`

/** A name out of its halves, and a department out of its name, where a page sends only these. */
const completed = async ({ body, database }: Call): Promise<Fields> => {
  const { firstName, lastName, department, departmentId } = body
  const name = [firstName, lastName].filter((part) => typeof part === 'string' && part !== '').join(' ')
  if (name === '' && body.name === '') throw invalid([{ path: '/firstName', message: 'or a last name is needed' }])
  const [known] =
    typeof department === 'string' && departmentId === undefined
      ? await database.rows('SELECT id FROM departments WHERE lower(name) = lower($1)', [department])
      : []
  return { ...(name !== '' && { name }), ...body, ...(known && { departmentId: known.id }) }
}

const carried = carrying('employee')

/** A person who is gone leaves no photo behind, and the transmitter goes back to the shelf. */
const forget = async (call: Call, ids: readonly string[]): Promise<void> => {
  await carried.removed(call, ids)
  await removeImages(call, personnel, ids)
}

const takePhoto: Run = async (call) => {
  await storeImage(call, personnel)
  return { photoUrl: `/api/personnel/${idOf(call)}/photo` }
}

const removePhoto: Run = async (call) => {
  if ((await removeImages(call, personnel, [idOf(call)])) === 0) throw notFound('photo')
}

const asCsv = exported(personnel, 'personnel.csv', (people) => csv(CSV_FIELDS, people))
const asPdf = exported(personnel, 'personnel.pdf', (people) => pdfTable('Personnel', PDF_COLUMNS, people))

const deleteMany: Run = async (call) => {
  const outcome = await changeMany(call, personnel, 'delete')
  await forget(call, idsIn(call.body))
  return outcome
}

export const personnelRoutes: Handlers = {
  ...crud(personnel, { prepare: completed, stored: carried.stored, removed: forget }),
  'GET /api/personnel/:id/photo': handler('personnel.read', storedImage('photo', personnel)),
  'POST /api/personnel/:id/photo': handler('personnel.update', takePhoto, { bodyLimit: MAX_PHOTO_BYTES, status: 201 }),
  'DELETE /api/personnel/:id/photo': handler('personnel.update', removePhoto),
  'GET /api/personnel/:id/beacons': handler('personnel.read', about(personnel, rows(BEACONS, 'id'))),
  'GET /api/personnel/export/csv': handler('personnel.export', asCsv, EXPORTS),
  'GET /api/personnel/export/pdf': handler('personnel.export', asPdf, EXPORTS),
  'POST /api/personnel/batch-delete': handler('personnel.delete', deleteMany),
  'POST /api/personnel/bulk-activate': handler('personnel.update', (call) => changeMany(call, personnel, 'activate')),
  'POST /api/personnel/bulk-deactivate': handler('personnel.update', (call) =>
    changeMany(call, personnel, 'deactivate')
  )
}
