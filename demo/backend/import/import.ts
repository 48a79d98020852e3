import { assignTransmitter } from '../assignment.js'
import { noteRows } from '../crud.js'
import { HttpError } from '../errors.js'
import { changeRecords, freeTransmitters, insertRecords } from '../records.js'
import type { Call } from '../route.js'
import type { Fields } from '../world.js'
import type { ImportKind } from './kinds.js'
import { countsOf, type PlannedRow, planImport, previewOf } from './preview.js'

/**
 * Imports the new and changed rows of a file whose preview the user has seen. If the file or the stored records give another
 * preview now, nothing is stored, and the error has the new preview.
 */
export const importFile = async (call: Call, kind: ImportKind, file: Uint8Array, fingerprint: string) => {
  // Other users can read meanwhile, but not change what the preview is compared with.
  await call.database.rows(`LOCK TABLE ${kind.resource.table}, transmitters IN SHARE ROW EXCLUSIVE MODE`)
  const rows = await planImport(call, kind, file)
  const preview = previewOf(rows)
  if (preview.fingerprint !== fingerprint)
    throw new HttpError(
      409,
      'IMPORT_CHANGED',
      'The file or the stored records have changed since the preview. Nothing was imported. Check the new preview.',
      undefined,
      { preview }
    )
  await store(call, kind, rows)
  return countsOf(rows)
}

interface Stored extends PlannedRow, Fields {
  readonly id: string
}

const store = async (call: Call, kind: ImportKind, rows: readonly PlannedRow[]): Promise<void> => {
  const { resource } = kind
  const stored = rows
    .filter(({ group }) => group === 'new' || group === 'changed')
    .map((row): Stored => ({ ...row, id: row.id ?? call.newId() }))
  const created = stored.filter(({ group }) => group === 'new')
  await insertRecords(
    call,
    resource,
    created.map(({ id, record }) => ({ ...kind.initial, ...ownFields(record), id }))
  )
  for (const row of stored.filter(({ group }) => group === 'changed')) {
    const changes = ownFields(row.record)
    await changeRecords(call, resource, [row.id], changes)
    await kind.changed?.(call, row.id, changes)
  }
  await assignTransmitters(call, kind, stored)
  noteRows(call, resource, stored)
}

const ownFields = ({ transmitterId: _transmitterId, ...fields }: Fields): Fields => fields

const assignTransmitters = async (call: Call, { resource }: ImportKind, rows: readonly Stored[]): Promise<void> => {
  const carrying = rows.filter(({ record }) => record.transmitterId !== undefined)
  // Before any is assigned, so that two people can swap transmitters.
  const ids = carrying.map(({ id }) => id)
  await freeTransmitters(call, resource, ids)
  for (const { id, record } of carrying)
    if (record.transmitterId !== null)
      await assignTransmitter(call, String(record.transmitterId), resource.entityTypes[0] ?? null, id)
}
