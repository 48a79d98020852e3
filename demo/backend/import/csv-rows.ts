import { type CsvError, parse } from 'csv-parse/sync'
import { HttpError } from '../errors.js'
import { formulaUnescaped } from '../export/csv.js'

/** A data row: its first line in the file, and its cells by column. */
export interface CsvRow {
  readonly line: number
  readonly cells: Readonly<Record<string, string>>
}

export interface CsvTable {
  /** The header in the order of the file. */
  readonly columns: readonly string[]
  readonly rows: readonly CsvRow[]
}

const MAX_ROWS = 5000

/** Spreadsheets in many languages separate cells with semicolons. */
const DELIMITERS = [',', ';', '\t']

const unreadable = (message: string): HttpError => new HttpError(400, 'UNREADABLE_FILE', message)

/** Reads a CSV file with a header line, as this service exports it and as spreadsheets save it. */
export const readCsv = (bytes: Uint8Array): CsvTable => {
  const [header, ...records] = recordsIn(textOf(bytes))
  if (header === undefined || records.length === 0) throw unreadable('The file has no rows below its header line.')
  if (records.length > MAX_ROWS) throw unreadable(`The file has more than ${MAX_ROWS} rows. Split it.`)
  const columns = header.cells.map((name) => name.trim())
  const rows = records.map(({ line, cells }) => {
    if (cells.length > columns.length)
      throw unreadable(`Line ${line} has ${cells.length} cells, the header line has ${columns.length}.`)
    return { line, cells: Object.fromEntries(cells.map((text, index) => [columns[index] ?? '', text])) }
  })
  return { columns, rows }
}

const textOf = (bytes: Uint8Array): string => {
  if (bytes.includes(0)) throw unreadable('The file is not UTF-8 text. Save it as "CSV UTF-8".')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadable('The file is not UTF-8 text. Save it as "CSV UTF-8".')
  }
}

const recordsIn = (text: string): { readonly line: number; readonly cells: readonly string[] }[] => {
  const [firstLine = ''] = text.split('\n', 1)
  const countOf = (delimiter: string): number => firstLine.split(delimiter).length
  const delimiter = DELIMITERS.toSorted((one, other) => countOf(other) - countOf(one))[0] ?? ','
  let nextLine = 1
  return readRecords(text, delimiter)
    .map(({ record, info }) => {
      const line = nextLine
      // `lines` counts up to the end of the record, whose cells may contain line breaks.
      nextLine = info.lines + 1
      return { line, cells: record.map((cell) => formulaUnescaped(cell)) }
    })
    .filter(({ cells }) => cells.some((cell) => cell.trim() !== ''))
}

interface CsvRecord {
  readonly record: readonly string[]
  readonly info: { readonly lines: number }
}

const readRecords = (text: string, delimiter: string): CsvRecord[] => {
  try {
    // The options `info` and no `columns` make this type, which the declarations of the package do not express.
    return parse(text, { delimiter, info: true, relax_column_count: true }) as unknown as CsvRecord[]
  } catch (error) {
    // The package throws errors of this type only.
    const { lines } = error as CsvError
    throw unreadable(`The quotation marks of line ${lines} do not match.`)
  }
}
