const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** The time since a moment, such as `5 min ago`. */
export const ago = (thenMs: number, nowMs: number): string => {
  const past = Math.max(nowMs - thenMs, 0)
  if (past < 1500) return 'just now'
  if (past < MINUTE_MS) return `${Math.floor(past / 1000)} s ago`
  if (past < HOUR_MS) return `${Math.floor(past / MINUTE_MS)} min ago`
  if (past < DAY_MS) return `${Math.floor(past / HOUR_MS)} h ago`
  return `${Math.floor(past / DAY_MS)} d ago`
}

/** A duration such as `2 h 5 min`. */
export const lastingText = (ms: number): string => {
  if (ms < MINUTE_MS) return `${Math.max(Math.floor(ms / 1000), 0)} s`
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`
  return `${Math.floor(ms / DAY_MS)} d ${Math.floor((ms % DAY_MS) / HOUR_MS)} h`
}

/** A running time such as `3:05` or `1:03:05`. */
export const durationText = (ms: number): string => {
  const seconds = Math.max(Math.floor(ms / 1000), 0)
  const two = (value: number): string => String(value).padStart(2, '0')
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
}

/** A waiting time, rounded up so that a retry after it is not too early. */
export const waitText = (seconds: number): string => {
  if (seconds < 60) return counted(Math.max(Math.ceil(seconds), 1), 'second')
  if (seconds < 3600) return counted(Math.ceil(seconds / 60), 'minute')
  return counted(Math.ceil(seconds / 3600), 'hour')
}

export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`

/** A stored word as a value of a list: "in use" becomes "In use". */
export const capitalized = (word: string | null | undefined): string =>
  word ? `${word[0]?.toUpperCase()}${word.slice(1)}` : ''

/** "Ada Example" becomes "AE". */
export const initials = (name: string): string => {
  const parts = name.trim().split(/\s+/)
  const letters = parts.length > 1 ? [parts[0], parts.at(-1)] : parts
  // A character such as an emoji has several code units.
  return letters.map((part) => [...(part ?? '')][0]?.toUpperCase() ?? '').join('')
}

export const bytesText = (bytes: number): string => {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(0)} KB`
  if (bytes < 1024 ** 3) return `${(bytes / 1024 ** 2).toFixed(1)} MB`
  return `${(bytes / 1024 ** 3).toFixed(1)} GB`
}

export const percent = (part: number, whole: number): number =>
  whole <= 0 ? 0 : Math.round((Math.min(Math.max(part, 0), whole) / whole) * 100)

const DATE_TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

export const dateTimeText = (moment: string | number | null | undefined): string => {
  const date = new Date(moment ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? '–' : DATE_TIME.format(date)
}

export const timeText = (moment: string | number): string => TIME.format(new Date(moment))
