import { type CsvError, parse } from 'csv-parse/sync'
import { HttpError } from '../errors.js'
import { formulaUnescaped } from '../export/csv.js'

/** A data row: its first line in the file, and its cells by column. */
export interface CsvRow {
  readonly line: number
  readonly cells: Readonly<Record<string, string>>
}

export interface CsvTable {
  /** In the order of the file. */
  readonly columns: readonly string[]
  readonly rows: readonly CsvRow[]
}

interface CsvRecord {
  readonly line: number
  readonly cells: readonly string[]
}

const MAX_ROWS = 5000
/** With the empty lines that spreadsheets save. */
const MAX_LINES = 20_000
/** Column names of a file that a message contains. */
const MAX_NAMES = 5

/** Spreadsheets in many languages separate cells with semicolons. */
const DELIMITERS = [',', ';', '\t']

const unreadable = (message: string): HttpError => new HttpError(400, 'UNREADABLE_FILE', message)

/**
 * Reads a CSV file with a header line, as this service exports it and as spreadsheets save it. The header may spell the
 * columns with other letters' case, spaces and hyphens: "First name" is `firstName`.
 */
export const readCsv = (bytes: Uint8Array, known: readonly string[]): CsvTable => {
  const [header, ...records] = recordsIn(textOf(bytes))
  if (header === undefined || records.length === 0) throw unreadable('The file has no rows below its header line.')
  if (records.length > MAX_ROWS) throw unreadable(`The file has more than ${MAX_ROWS} rows. Split it.`)
  const columns = columnsOf(header, records, known)
  const rows = records.map(({ line, cells }) => {
    if (cells.length > columns.length)
      throw unreadable(`Line ${line} has ${cells.length} cells, the header line has ${columns.length}.`)
    const named = cells.flatMap((text, index) => (columns[index] ? [[columns[index], text] as const] : []))
    return { line, cells: Object.fromEntries(named) }
  })
  return { columns: columns.filter(Boolean), rows }
}

/** Of a column in the spelling of the file. */
const keyOf = (name: string): string => name.replace(/[\s_.-]/g, '').toLowerCase()

const quoted = (names: readonly string[]): string =>
  [...names.slice(0, MAX_NAMES).map((name) => `"${name}"`), ...(names.length > MAX_NAMES ? ['…'] : [])].join(', ')

/** The name of each column; empty for one without name and cells, as spreadsheets add it. */
const columnsOf = (header: CsvRecord, records: readonly CsvRecord[], known: readonly string[]): string[] => {
  const names = new Map(known.map((name) => [keyOf(name), name]))
  const unknown = header.cells.filter((name) => name.trim() !== '' && !names.has(keyOf(name)))
  if (unknown.length > 0)
    throw unreadable(`The file has unknown columns: ${quoted(unknown)}. Known columns: ${known.join(', ')}.`)
  const columns = header.cells.map((name) => names.get(keyOf(name)) ?? '')
  const repeated = columns.filter((name, index) => name !== '' && columns.indexOf(name) < index)
  if (repeated.length > 0) throw unreadable(`The header line has a column twice: ${quoted(repeated)}.`)
  const nameless = columns.findIndex(
    (name, index) => name === '' && records.some(({ cells }) => (cells[index] ?? '').trim() !== '')
  )
  if (nameless !== -1) throw unreadable(`Column ${nameless + 1} has no name in the header line.`)
  return columns
}

const textOf = (bytes: Uint8Array): string => {
  if (bytes.includes(0)) throw unreadable('The file is not UTF-8 text. Save it as "CSV UTF-8".')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadable('The file is not UTF-8 text. Save it as "CSV UTF-8".')
  }
}

const recordsIn = (text: string): CsvRecord[] => {
  const [firstLine = ''] = text.split('\n', 1)
  const countOf = (delimiter: string): number => firstLine.split(delimiter).length
  const delimiter = DELIMITERS.toSorted((one, other) => countOf(other) - countOf(one))[0] ?? ','
  const found = parsed(text, delimiter)
  // Otherwise the rows behind would be left out silently.
  if (found.length > MAX_LINES)
    throw unreadable(`The file has more than ${MAX_ROWS} rows, or more than ${MAX_LINES} lines. Split it.`)
  let nextLine = 1
  return found
    .map(({ record, info }) => {
      const line = nextLine
      // `lines` counts up to the end of the record, whose cells may contain line breaks.
      nextLine = info.lines + 1
      return { line, cells: record.map((cell) => formulaUnescaped(cell)) }
    })
    .filter(({ cells }) => cells.some((cell) => cell.trim() !== ''))
}

interface ParsedRecord {
  readonly record: readonly string[]
  readonly info: { readonly lines: number }
}

const parsed = (text: string, delimiter: string): ParsedRecord[] => {
  try {
    // A file that is too long is not read to its end.
    const options = { delimiter, info: true, relax_column_count: true, to: MAX_LINES + 1 } as const
    // The options `info` and no `columns` make this type, which the declarations of the package do not express.
    return parse(text, options) as unknown as ParsedRecord[]
  } catch (error) {
    // The package throws errors of this type only.
    const { lines } = error as CsvError
    throw unreadable(`The quotation marks of line ${lines} do not match.`)
  }
}
