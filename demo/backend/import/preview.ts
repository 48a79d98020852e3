import { createHash } from 'node:crypto'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { fieldErrors } from '../../../schemas/field-errors.js'
import { sqlName } from '../database/columns.js'
import { HttpError } from '../errors.js'
import { textOf } from '../export/csv.js'
import { getRecords } from '../records.js'
import type { Fields, World } from '../world.js'
import { cellValue } from './cells.js'
import { type CsvTable, readCsv } from './csv-rows.js'
import { type ColumnError, IMPORT_KINDS, type ImportKind, type ImportRow, valueIn } from './kinds.js'
import { readSite, type Site } from './site.js'

/** Ids are parts of paths. */
const ID = /^[\w-]{1,128}$/

/** By kind name. */
export const kinds: Readonly<Record<string, ImportKind>> = IMPORT_KINDS

const validators = new Map(Object.values(kinds).map((kind) => [kind, TypeCompiler.Compile(kind.schema)]))

/** The columns that differ from the stored record, as text. */
interface Change {
  readonly column: string
  readonly before: string
  readonly after: string
}

/** A row of the file, and the action of the import for it. */
export interface PlannedRow extends ImportRow {
  readonly group: 'new' | 'changed' | 'unchanged' | 'duplicate' | 'faulty'
  readonly name: string
  /** The fields to store: of a stored record those that differ. */
  readonly record: Fields
  readonly changes: readonly Change[]
  /** Why the row is a duplicate or faulty. */
  readonly reasons: readonly ColumnError[]
}

/** Reads a file and decides about each row. Stores nothing. */
export const planImport = async (world: World, kind: ImportKind, file: Uint8Array): Promise<PlannedRow[]> => {
  const table = readCsv(file, kind.columns)
  mustHaveColumns(kind, table)
  const site = await readSite(world)
  const rows = await importRows(world, kind, table, site)
  const faults = new Map(rows.map((row) => [row, rowErrors(kind, row, site)]))
  const duplicates = await findDuplicates(
    world,
    kind,
    rows.filter((row) => faults.get(row)?.length === 0)
  )
  const isAccepted = (row: ImportRow): boolean => faults.get(row)?.length === 0 && !duplicates.has(row)
  addTransmitterErrors(kind, rows, site, faults, isAccepted)
  return rows.map((row) => {
    const record = differing(recordOf(kind, row, site), row.stored)
    const reasons = [...(faults.get(row) ?? []), ...(duplicates.get(row) ?? [])]
    const changes = changesOf(kind, row, record, site)
    const name = String({ ...row.stored, ...record }.name ?? '')
    return { ...row, group: groupOf(row, reasons, duplicates.has(row), changes), name, record, changes, reasons }
  })
}

const groupOf = (
  { stored }: ImportRow,
  reasons: readonly ColumnError[],
  isDuplicate: boolean,
  changes: readonly Change[]
): PlannedRow['group'] => {
  if (reasons.length > 0) return isDuplicate ? 'duplicate' : 'faulty'
  return stored === null ? 'new' : changes.length > 0 ? 'changed' : 'unchanged'
}

/** Without these columns, every row would have the same error. Rows with an id can do without. */
const mustHaveColumns = ({ required }: ImportKind, { columns }: CsvTable): void => {
  const missing = required.filter((group) => !group.some((column) => columns.includes(column)))
  if (missing.length === 0 || columns.includes('id')) return
  const names = missing.map((group) => group.join(' or ')).join(', ')
  throw new HttpError(400, 'UNREADABLE_FILE', `The file lacks columns: ${names}. It has: ${columns.join(', ')}.`)
}

const importRows = async (world: World, kind: ImportKind, { rows, columns }: CsvTable, site: Site) => {
  const sent = rows.map(({ line, cells }) => ({
    line,
    id: cells.id?.trim() || null,
    values: Object.fromEntries(
      columns
        .filter((column) => column !== 'id')
        .map((column) => [column, cellValue(kind.resource.columns[column], cells[column] ?? '', site.timeZone)])
    )
  }))
  const ids = sent.flatMap(({ id }) => id ?? [])
  const stored = new Map((await getRecords(world, kind.resource, ids)).map((record) => [record.id, record]))
  return sent.map((row): ImportRow => ({ ...row, stored: stored.get(row.id) ?? null }))
}

const REFERENCES = { buildingId: 'buildings', floorId: 'floors', departmentId: 'departments' } as const

const rowErrors = (kind: ImportKind, row: ImportRow, site: Site): ColumnError[] => {
  const missing = kind.required.filter((group) => group.every((column) => valueIn(row, column) === null))
  const errors = missing.map((group) => ({ column: group.join(', '), message: 'is required' }))
  const values = Object.fromEntries(
    Object.entries(row.values).filter(([column]) => !missing.some((group) => group.includes(column)))
  )
  const { named } = kind
  const checked = Object.fromEntries(Object.entries(values).filter(([column]) => named[column] === undefined))
  // Without columns, there is nothing to check.
  for (const { path, message } of fieldErrors(validators.get(kind)?.Errors(checked) ?? []))
    if (path !== '') errors.push({ column: path.slice(1), message })
  if (row.id !== null && !ID.test(row.id))
    errors.push({ column: 'id', message: 'may have letters, digits, - and _ only' })
  for (const [column, table] of Object.entries(REFERENCES))
    if (values[column] != null && !site.ids[table].has(String(values[column])))
      errors.push({ column, message: 'does not exist' })
  for (const column of Object.keys(named)) {
    const found = values[column] == null || isUnchanged(row, column) ? 1 : idsNamed(kind, column, values, site).length
    if (found === 0) errors.push({ column, message: 'does not exist' })
    if (found > 1) errors.push({ column, message: `is the name of ${found} people. Use the e-mail address` })
  }
  return [...errors, ...(kind.errors?.(row, site) ?? [])]
}

const isUnchanged = ({ values, stored }: ImportRow, column: string): boolean =>
  textOf(stored?.[column]).toLowerCase() === textOf(values[column]).toLowerCase()

const idsNamed = ({ named }: ImportKind, column: string, values: Fields, site: Site): readonly string[] => {
  const text = textOf(values[column]).toLowerCase()
  if (named[column]?.from === 'personnel') return site.people.get(text) ?? []
  const id = site.departments.get(text)
  return id === undefined ? [] : [id]
}

/** Rows with the id or the unique values of another row or record. */
const findDuplicates = async ({ database }: World, kind: ImportKind, rows: readonly ImportRow[]) => {
  const { resource, unique } = kind
  const fields = [...new Set(unique.flat())]
  const stored = await database.rows(`SELECT id, name, ${fields.map(sqlName).join(', ')} FROM ${resource.table}`)
  const owners = new Map(unique.flatMap((one) => stored.map((record) => [keyOf(one, record), record])))
  const lines = new Map<string, number>()
  const found = new Map<ImportRow, ColumnError[]>()
  for (const row of rows) {
    const whole = Object.fromEntries(fields.map((field) => [field, valueIn(row, field)]))
    const keys = unique
      .map((one) => ({
        column: one[0] ?? '',
        key: keyOf(one, whole),
        isOld: keyOf(one, row.stored) === keyOf(one, whole)
      }))
      .filter(({ key, isOld }) => key !== null && !isOld)
    if (row.id !== null) keys.push({ column: 'id', key: `id ${row.id}`, isOld: false })
    const errors = keys.flatMap(({ column, key }) => {
      const line = lines.get(key ?? '')
      const owner = owners.get(key)
      if (line !== undefined) return [{ column, message: `is also in line ${line}` }]
      return owner === undefined || owner.id === row.id ? [] : [{ column, message: `belongs to ${owner.name} already` }]
    })
    if (errors.length > 0) found.set(row, errors)
    else for (const { key } of keys) lines.set(key ?? '', row.line)
  }
  return found
}

const keyOf = (fields: readonly string[], record: Fields | null): string | null => {
  const [first, ...others] = fields.map((field) => textOf(record?.[field]).toLowerCase())
  return first ? JSON.stringify([fields[0], first, ...others]) : null
}

/**
 * Transmitters that others carry. A row that is rejected keeps its transmitter, so that another row may not get it either:
 * repeated until nothing changes.
 */
const addTransmitterErrors = (
  { resource }: ImportKind,
  rows: readonly ImportRow[],
  { carriers }: Site,
  faults: Map<ImportRow, ColumnError[]>,
  isAccepted: (row: ImportRow) => boolean
): void => {
  const column = 'transmitterId'
  for (let isDone = false; !isDone; ) {
    isDone = true
    const accepted = rows.filter(isAccepted)
    const freed = new Set(accepted.map(({ id }) => `${resource.entityTypes[0]}/${id}`))
    const lines = new Map<unknown, number>()
    for (const row of accepted) {
      const { [column]: id } = row.values
      if (typeof id !== 'string') continue
      const carrier = carriers.get(id)
      const message = lines.has(id)
        ? `is also in line ${lines.get(id)}`
        : carrier === undefined
          ? 'does not exist'
          : carrier !== null && !freed.has(carrier) && 'is carried by someone or something else'
      lines.set(id, lines.get(id) ?? row.line)
      if (!message) continue
      faults.set(row, [{ column, message }])
      isDone = false
    }
  }
}

/** The fields to store, with ids in place of names. `transmitterId` is assigned, not stored. */
const recordOf = (kind: ImportKind, row: ImportRow, site: Site): Fields => {
  const ids = Object.entries(kind.named).flatMap(([column, { field }]) => {
    if (row.values[column] === undefined) return []
    if (isUnchanged(row, column)) return [[field, row.stored?.[field] ?? null]]
    return [[field, idsNamed(kind, column, row.values, site)[0] ?? null]]
  })
  const values = Object.entries(row.values).filter(([column]) => kind.named[column] === undefined)
  return { ...Object.fromEntries(values), ...kind.computed?.(row), ...Object.fromEntries(ids) }
}

/** The fields that differ from the stored record; of a new one those with a value. */
const differing = (record: Fields, stored: Fields | null): Fields =>
  Object.fromEntries(Object.entries(record).filter(([field, value]) => textOf(value) !== textOf(stored?.[field])))

const changesOf = (kind: ImportKind, { stored }: ImportRow, record: Fields, site: Site): Change[] => {
  const columns = new Map(Object.entries(kind.named).map(([column, { field, from }]) => [field, { column, from }]))
  return Object.entries(record).map(([field, value]) => {
    const named = columns.get(field)
    if (named === undefined) return { column: field, before: textOf(stored?.[field]), after: textOf(value) }
    const after = value === null ? '' : (site.names[named.from].get(String(value)) ?? '')
    return { column: named.column, before: textOf(stored?.[named.column]), after }
  })
}

export const countsOf = (rows: readonly PlannedRow[]) => {
  const count = (group: PlannedRow['group']): number => rows.filter((row) => row.group === group).length
  return {
    new: count('new'),
    changed: count('changed'),
    unchanged: count('unchanged'),
    duplicate: count('duplicate'),
    faulty: count('faulty')
  }
}

/** The rows as the user sees them, and a fingerprint that changes with every difference. */
export const previewOf = (rows: readonly PlannedRow[]) => {
  const shown = rows.map(({ group, line, id, name, changes, reasons }) => ({ group, line, id, name, changes, reasons }))
  const fingerprint = createHash('sha256').update(JSON.stringify(shown)).digest('hex')
  // Rows that stay as they are would only make the response large.
  return { fingerprint, counts: countsOf(rows), rows: shown.filter(({ group }) => group !== 'unchanged') }
}
