import type { PositionEntry } from '../../../schemas/realtime.js'

/** A date, or a date and a time. Other texts are not used, because browsers parse them differently. */
const ISO_8601 = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/i

/** The timestamp of an entry in Unix milliseconds. NaN without one, so that every comparison with it is false. */
export const entryTimeMs = ({ timestamp }: Pick<PositionEntry, 'timestamp'>): number => {
  if (typeof timestamp === 'string') return isoTimeMs(timestamp)
  return typeof timestamp === 'number' ? timestamp : Number.NaN
}

/** A time without an offset is UTC, as in the relay. */
const isoTimeMs = (text: string): number => {
  const match = ISO_8601.exec(text)
  if (match === null) return Number.NaN
  const [date, time] = [text.slice(0, 10), text.slice(11).toUpperCase()]
  if (time === '') return Date.parse(date)
  return Date.parse(`${date}T${time}${match[1] === undefined ? 'Z' : ''}`)
}

/** The time of a position by the page's clock: its timestamp, but not after its arrival; the arrival without a timestamp. */
export const positionTimeMs = (entry: Pick<PositionEntry, 'timestamp'>, receivedAtMs: number): number => {
  const timeMs = entryTimeMs(entry)
  return timeMs < receivedAtMs ? timeMs : receivedAtMs
}
