/** The times that can be played. */
export interface StoredTime {
  readonly fromMs: number
  readonly toMs: number
}

/** Before the start of each part, so that trails are complete there. */
export const LEAD_MS = 10 * 60_000
/** Positions are requested for parts of this length; with the lead, an hour. */
const PART_MS = 50 * 60_000

/** The number of the part that contains a time. */
export const partAt = (ms: number): number => Math.floor(ms / PART_MS)

export const rangeOfPart = (part: number): StoredTime => ({
  fromMs: part * PART_MS - LEAD_MS,
  toMs: (part + 1) * PART_MS
})

export const clamp = (ms: number, { fromMs, toMs }: StoredTime): number => Math.min(Math.max(ms, fromMs), toMs)

/** The part of a day, in the time zone of the browser, that can be played. */
export const dayAround = (ms: number, stored: StoredTime): StoredTime => {
  const start = new Date(ms)
  start.setHours(0, 0, 0, 0)
  const end = new Date(start)
  // Days with a change of the clock have 23 or 25 hours.
  end.setDate(end.getDate() + 1)
  return { fromMs: clamp(start.getTime(), stored), toMs: clamp(end.getTime(), stored) }
}

const two = (value: number): string => String(value).padStart(2, '0')

/** The day of a time for a date field, such as `2026-11-16`. */
export const dateText = (ms: number): string => {
  const date = new Date(ms)
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** The same time of day on another day; null if the text is not a day. */
export const onDate = (ms: number, text: string): number | null => {
  const [year, month, day] = (/^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? []).slice(1).map(Number)
  if (year === undefined || month === undefined || day === undefined) return null
  const date = new Date(ms)
  date.setFullYear(year, month - 1, day)
  return date.getTime()
}

/** A time for the URL, in seconds and in UTC: the same in every time zone. */
export const textOfTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** The time of such a text; null if it is not one. */
export const timeOfText = (text: string | null): number | null => {
  if (text === null || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z$/.test(text)) return null
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}
