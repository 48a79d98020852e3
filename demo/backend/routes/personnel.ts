import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { changeMany } from '../bulk.js'
import { carrying } from '../carriers.js'
import { crud } from '../crud.js'
import type { Statements } from '../database/database.js'
import { notFound } from '../errors.js'
import { csv } from '../export/csv.js'
import { pdfTable } from '../export/pdf.js'
import { pageOf, WHOLE_LIST } from '../paging.js'
import { type Fields, Records } from '../records.js'
import { personnel } from '../resources.js'
import { type Call, FileAnswer, type Handlers, handler, idOf, idsIn } from '../route.js'
import { imageIn, removeFile, storedFile, storeFile } from '../uploads.js'

const MAX_PHOTO_BYTES = 2 * 1024 * 1024
const EXPORTS_PER_MINUTE = 30

const CSV_FIELDS = (
  'id employeeId firstName lastName email phone jobTitle department buildingId floorId transmitterId startDate ' +
  'isActive isFirstAider isFireWarden notes'
).split(' ')

const PDF_COLUMNS = [
  { field: 'name', title: 'Name', width: 160 },
  { field: 'jobTitle', title: 'Job title', width: 150 },
  { field: 'department', title: 'Department', width: 120 },
  { field: 'email', title: 'E-mail', width: 190 },
  { field: 'transmitterId', title: 'Transmitter', width: 100 }
]

export const personnelRoutes = (backend: Backend): Handlers => {
  const { database, now } = backend
  const records = new Records(personnel, backend)
  const may = (action: string) => requirePermission('personnel', action)
  const photoOf = (call: Call): string => `personnel/${idOf(call)}`
  const carried = carrying('employee', backend)

  /** A person who is gone leaves no photo behind, and the transmitter goes back to the shelf. */
  const forget = async (statements: Statements, ids: readonly string[], call: Call): Promise<void> => {
    await carried.removed(statements, ids, call)
    await statements.rows(
      "DELETE FROM files WHERE owner IN (SELECT 'personnel/' || id FROM jsonb_array_elements_text($1::jsonb) AS gone(id))",
      [JSON.stringify(ids)]
    )
  }

  const everybody = async ({ query }: Call) =>
    (await records.list(database, { ...pageOf(query), ...WHOLE_LIST }, query)).rows

  const setActive =
    (isActive: boolean) =>
    async ({ body }: Call) =>
      changeMany(database, records, { ids: body.ids, changes: { isActive } })

  return {
    ...crud('/api/personnel', personnel, backend, {
      prepare: completed,
      stored: carried.stored,
      removed: forget
    }),
    'GET /api/personnel/:id/photo': handler(may('read'), async (call) => {
      const photo = await storedFile(database, photoOf(call))
      if (photo === null) throw notFound('photo')
      return photo
    }),
    'POST /api/personnel/:id/photo': handler(
      may('update'),
      async (call) => {
        await records.get(database, idOf(call))
        await storeFile(database, photoOf(call), imageIn(call), now())
        return { photoUrl: `/api/personnel/${idOf(call)}/photo` }
      },
      { bodyLimit: MAX_PHOTO_BYTES, status: 201 }
    ),
    'DELETE /api/personnel/:id/photo': handler(may('update'), async (call) => {
      await removeFile(database, photoOf(call), 'photo')
      return null
    }),
    'GET /api/personnel/:id/beacons': handler(may('read'), async (call) => {
      await records.get(database, idOf(call))
      return database.rows(
        `SELECT id, name, mac_address AS "macAddress", 'transmitter' AS type, battery_level AS "batteryLevel", status
         FROM transmitters WHERE entity_type = 'employee' AND entity_id = $1
         UNION ALL
         SELECT id, name, mac_address, coalesce(type, 'beacon'), battery_level, status FROM beacons WHERE personnel_id = $1
         ORDER BY id`,
        [idOf(call)]
      )
    }),
    'GET /api/personnel/export/csv': handler(
      may('export'),
      async (call) =>
        new FileAnswer('text/csv; charset=utf-8', csv(CSV_FIELDS, await everybody(call)), 'personnel.csv'),
      { perMinute: EXPORTS_PER_MINUTE }
    ),
    'GET /api/personnel/export/pdf': handler(
      may('export'),
      async (call) =>
        new FileAnswer('application/pdf', pdfTable('Personnel', PDF_COLUMNS, await everybody(call)), 'personnel.pdf'),
      { perMinute: EXPORTS_PER_MINUTE }
    ),
    'POST /api/personnel/batch-delete': handler(may('delete'), (call) =>
      database.transaction(async (statements) => {
        const { ids } = call.body
        const outcome = await changeMany(statements, records, { ids, action: 'delete' })
        await forget(statements, idsIn(call.body), call)
        return outcome
      })
    ),
    'POST /api/personnel/bulk-activate': handler(may('update'), setActive(true)),
    'POST /api/personnel/bulk-deactivate': handler(may('update'), setActive(false))
  }
}

/** A name out of its halves, and a department out of its name, where a page sends only these. */
const completed = async (statements: Statements, body: Fields): Promise<Fields> => {
  const { firstName, lastName, department } = body
  const name = [firstName, lastName].filter((part) => typeof part === 'string' && part !== '').join(' ')
  const [known] =
    typeof department === 'string' && body.departmentId === undefined
      ? await statements.rows('SELECT id FROM departments WHERE lower(name) = lower($1)', [department])
      : []
  return {
    ...body,
    ...(name !== '' && body.name === undefined ? { name } : {}),
    ...(known === undefined ? {} : { departmentId: known.id })
  }
}
