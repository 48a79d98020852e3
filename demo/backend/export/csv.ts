import type { Fields } from '../world.js'

/** Writes the fields of rows in this order, with a header line. */
export const csv = (fields: readonly string[], rows: readonly Fields[]): string =>
  [fields, ...rows.map((row) => fields.map((field) => row[field]))]
    .map((cells) => `${cells.map(cell).join(',')}\r\n`)
    .join('')

const cell = (value: unknown): string => {
  const text = formulaEscaped(textOf(value))
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return ''
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

// Spreadsheets run text that starts like this as a formula. A leading apostrophe prevents it.
const FORMULA = /^'*[=+\-@\t\r]/

const formulaEscaped = (text: string): string => (FORMULA.test(text) ? `'${text}` : text)
