import { TypeCompiler } from '@sinclair/typebox/compiler'
import { type FieldError, fieldErrors } from '../../../schemas/field-errors.js'
import { PersonnelUpdateSchema } from '../../../schemas/personnel.js'
import { assignTransmitter } from '../assignment.js'
import { HttpError } from '../errors.js'
import { changeRecords, freeTransmitters, getRecords, insertRecords } from '../records.js'
import { personnel } from '../resources.js'
import type { Call } from '../route.js'
import type { Fields } from '../world.js'
import { type CsvTable, readCsv } from './csv-rows.js'

/** The columns of the CSV file. An import may omit columns; their fields stay as they are. */
export const PERSONNEL_COLUMNS: readonly string[] = (
  'id employeeId name firstName lastName email phone jobTitle department buildingId floorId transmitterId badgeNumber ' +
  'startDate endDate isActive isFirstAider isFireWarden notes'
).split(' ')

/** As in the schema of a person: a longer name could be exported, but not be imported again. */
export const MAX_FULL_NAME = 200
export const FULL_NAME_TOO_LONG = `is too long: the whole name has at most ${MAX_FULL_NAME} characters`

const MAX_ERRORS = 50
/** Ids are parts of paths. */
const ID = /^[\w-]{1,128}$/

const schema = TypeCompiler.Compile(PersonnelUpdateSchema)

/** One row of the file: a person to create, or the stored person to change. */
interface PersonRow {
  readonly line: number
  readonly id: string | null
  /** The values of the file; null for empty cells. */
  readonly values: Fields
  readonly stored: Fields | null
}

/** The records that rows of the file can refer to. */
interface Site {
  readonly departments: ReadonlyMap<string, string>
  readonly buildings: ReadonlySet<string>
  readonly floors: ReadonlySet<string>
  /** The carrier of each transmitter as `type/id`; null if it is available. */
  readonly carriers: ReadonlyMap<string, string | null>
}

/**
 * Creates and changes people from a CSV file. A row with the id of a stored person changes that person. If one row is not
 * valid, nothing is imported, and the error lists the lines.
 */
export const importPersonnel = async (call: Call, file: Uint8Array) => {
  const table = readCsv(file)
  // With a wrong header, the errors of the rows would only distract.
  mustBeEmpty(columnErrors(table))
  const rows = await personRows(call, table)
  const site = await readSite(call)
  mustBeEmpty([...rows.flatMap((row) => rowErrors(row, site)), ...duplicateErrors(rows, site)])

  const created = rows.filter(({ stored }) => stored === null).map((row) => ({ ...row, id: row.id ?? call.newId() }))
  await insertRecords(
    call,
    personnel,
    created.map((row) => ({ isActive: true, ...bodyOf(row, site), id: row.id }))
  )
  const changed = rows.flatMap((row) => {
    const body = changesOf(row, site)
    return row.stored !== null && row.id !== null && Object.keys(body).length > 0 ? [{ ...row, id: row.id, body }] : []
  })
  for (const { id, body } of changed) await changeRecords(call, personnel, [id], body)

  const carrying = [...created, ...changed].filter(
    ({ values, stored }) =>
      values.transmitterId !== undefined && values.transmitterId !== (stored?.transmitterId ?? null)
  )
  // Before any is assigned, so that two people can swap transmitters.
  const ids = carrying.map(({ id }) => id)
  await freeTransmitters(call, personnel, ids)
  for (const { id, values } of carrying)
    if (values.transmitterId !== null) await assignTransmitter(call, String(values.transmitterId), 'employee', id)

  for (const row of [...created, ...changed]) {
    call.subjects.push(`person ${nameOf(row)}`)
    call.people.push({ id: `personnel/${row.id}`, name: nameOf(row) })
  }
  return { created: created.length, changed: changed.length, unchanged: rows.length - created.length - changed.length }
}

const mustBeEmpty = (errors: readonly FieldError[]): void => {
  if (errors.length === 0) return
  const count = errors.length === 1 ? 'One error' : `${errors.length} errors`
  throw new HttpError(422, 'IMPORT_REJECTED', `Nothing was imported. ${count}.`, errors.slice(0, MAX_ERRORS))
}

/** Errors have the path `/<line>/<column>`. */
const errorAt = (line: number, column: string, message: string): FieldError => ({ path: `/${line}/${column}`, message })

const personRows = async (call: Call, { rows, columns }: CsvTable): Promise<PersonRow[]> => {
  const known = columns.filter((column) => PERSONNEL_COLUMNS.includes(column) && column !== 'id')
  const sent = rows.map(({ line, cells }) => ({
    line,
    id: cells.id?.trim() || null,
    values: Object.fromEntries(known.map((column) => [column, cellValue(column, cells[column] ?? '')]))
  }))
  const stored = await getRecords(
    call,
    personnel,
    sent.flatMap(({ id }) => id ?? [])
  )
  const byId = new Map(stored.map((person) => [person.id, person]))
  return sent.map((row) => ({ ...row, stored: byId.get(row.id) ?? null }))
}

const cellValue = (column: string, cell: string): unknown => {
  const text = cell.trim()
  if (text === '') return null
  // Spreadsheets write flags in capital letters.
  if (personnel.columns[column] === 'boolean') return FLAGS.get(text.toLowerCase()) ?? text
  // Points in time are text or milliseconds.
  return personnel.columns[column] === 'jsonb' && /^\d{9,}$/.test(text) ? Number(text) : text
}

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['yes', true],
  ['false', false],
  ['no', false]
])

const readSite = async ({ database }: Call): Promise<Site> => {
  const ids = async (table: string) =>
    new Set((await database.rows<{ id: string }>(`SELECT id FROM ${table}`)).map(({ id }) => id))
  const departments = await database.rows<{ id: string; name: string }>(
    'SELECT id, lower(name) AS name FROM departments'
  )
  const transmitters = await database.rows<{ id: string; carrier: string | null }>(
    "SELECT id, entity_type || '/' || coalesce(entity_id, '') AS carrier FROM transmitters"
  )
  return {
    departments: new Map(departments.map(({ id, name }) => [name, id])),
    buildings: await ids('buildings'),
    floors: await ids('floors'),
    carriers: new Map(transmitters.map(({ id, carrier }) => [id, carrier]))
  }
}

const columnErrors = ({ columns }: CsvTable): FieldError[] =>
  columns.flatMap((column, index) => {
    if (!PERSONNEL_COLUMNS.includes(column)) return [errorAt(1, column, 'is not a column of personnel')]
    return columns.indexOf(column) < index ? [errorAt(1, column, 'appears twice')] : []
  })

const rowErrors = (row: PersonRow, site: Site): FieldError[] => {
  const { line, id, values } = row
  const errors = fieldErrors(schema.Errors(values)).map(({ path, message }) => errorAt(line, path.slice(1), message))
  const unknown = (column: string, isKnown: (text: string) => boolean): void => {
    const value = values[column]
    if (value != null && !isKnown(String(value))) errors.push(errorAt(line, column, 'does not exist'))
  }
  if (id !== null && !ID.test(id)) errors.push(errorAt(line, 'id', 'may have letters, digits, - and _ only'))
  if (nameOf(row) === '') errors.push(errorAt(line, 'name', 'is required, or a first or last name'))
  if (nameOf(row).length > MAX_FULL_NAME) errors.push(errorAt(line, 'lastName', FULL_NAME_TOO_LONG))
  unknown('department', (name) => site.departments.has(name.toLowerCase()))
  unknown('buildingId', (building) => site.buildings.has(building))
  unknown('floorId', (floor) => site.floors.has(floor))
  unknown('transmitterId', (transmitter) => site.carriers.has(transmitter))
  return errors
}

/** Rows with the same id or transmitter, and transmitters of carriers that are not in the file. */
const duplicateErrors = (rows: readonly PersonRow[], { carriers }: Site): FieldError[] => {
  const imported = new Set(rows.map(({ id }) => `employee/${id}`))
  const lines = new Map<string, number>()
  return rows.flatMap(({ line, id, values }) => {
    const { transmitterId } = values
    const carrier = typeof transmitterId === 'string' ? (carriers.get(transmitterId) ?? null) : null
    const isTaken = carrier !== null && !imported.has(carrier)
    return [
      ...repeated(lines, line, 'id', id),
      ...repeated(lines, line, 'transmitterId', transmitterId),
      ...(isTaken ? [errorAt(line, 'transmitterId', 'is carried by someone or something else')] : [])
    ]
  })
}

const repeated = (lines: Map<string, number>, line: number, column: string, value: unknown): FieldError[] => {
  if (value == null) return []
  const first = lines.get(`${column}/${value}`)
  lines.set(`${column}/${value}`, first ?? line)
  return first === undefined ? [] : [errorAt(line, column, `is also in line ${first}`)]
}

/** The name of the file. A stored name follows a changed first or last name. */
const nameOf = ({ values, stored }: PersonRow): string => {
  const first = values.firstName === undefined ? stored?.firstName : values.firstName
  const last = values.lastName === undefined ? stored?.lastName : values.lastName
  const name = values.name === undefined ? stored?.name : values.name
  const full = [first, last].filter((part) => typeof part === 'string' && part !== '').join(' ')
  const hasNewParts = (first ?? null) !== (stored?.firstName ?? null) || (last ?? null) !== (stored?.lastName ?? null)
  const isOldName = name == null || name === '' || name === stored?.name
  return String((isOldName && hasNewParts && full !== '' ? full : name) ?? full)
}

/** The row as stored: with its full name, and the department by its id. */
const bodyOf = (row: PersonRow, { departments }: Site): Fields => {
  const { department, transmitterId: _transmitterId, ...values } = row.values
  const departmentId = typeof department === 'string' ? departments.get(department.toLowerCase()) : null
  return { ...values, name: nameOf(row), ...(department !== undefined && { departmentId }) }
}

/** The fields that differ from the stored person; with `transmitterId` if another one is assigned. */
const changesOf = (row: PersonRow, site: Site): Fields => {
  const { stored, values } = row
  const { transmitterId } = values
  const wanted = { ...bodyOf(row, site), ...(transmitterId !== undefined && { transmitterId }) }
  return Object.fromEntries(Object.entries(wanted).filter(([field, value]) => value !== (stored?.[field] ?? null)))
}
