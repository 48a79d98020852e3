import { parseIsoTime } from '../../../schemas/iso-time.js'

// Converts the cells of a file. A cell that cannot be converted stays text, which the schema rejects.

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['yes', true],
  ['false', false],
  ['no', false]
])

/** The value of a cell for a column of this SQL type; null for an empty cell. */
export const cellValue = (type: string | undefined, cell: string, timeZone: string): unknown => {
  const text = cell.trim()
  if (text === '') return null
  // Spreadsheets write flags in capital letters.
  if (type === 'boolean') return FLAGS.get(text.toLowerCase()) ?? text
  if (type === 'double precision' || type === 'integer') return numberOf(text)
  if (type === 'timestamptz') return timeOf(text, timeZone)
  // Points in time of other columns are text or milliseconds.
  return type === 'jsonb' && /^\d{9,}$/.test(text) ? Number(text) : text
}

const numberOf = (text: string): unknown => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text)

const HAS_OFFSET = /(z|[+-]\d\d(:?\d\d)?)$/i
const HAS_TIME = /[t ]\d/i

/** A time without an offset is that of the site. A day alone is not a point in time. */
const timeOf = (text: string, timeZone: string): unknown => {
  const ms = parseIsoTime(text.toUpperCase())
  if (Number.isNaN(ms) || !HAS_TIME.test(text)) return text
  const isLocal = !HAS_OFFSET.test(text.slice('2026-01-01'.length))
  return new Date(isLocal ? ms - offsetMs(ms, timeZone) : ms).toISOString()
}

/** The difference of a time zone to UTC, close to a time in that zone. */
const offsetMs = (atMs: number, timeZone: string): number => {
  try {
    const [part] = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' })
      .formatToParts(atMs)
      .filter(({ type }) => type === 'timeZoneName')
    const [, sign, hours = 0, minutes = 0] = /([+-])(\d\d):(\d\d)/.exec(part?.value ?? '') ?? []
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
  } catch {
    // The setting is not the name of a time zone.
    return 0
  }
}
