import { NO_TIME, parseIsoTime } from '../../../schemas/iso-time.js'
import type { PositionEntry } from '../../../schemas/realtime.js'

/** The timestamp of an entry in Unix milliseconds. `NO_TIME` without one. */
export const entryTimeMs = ({ timestamp }: Pick<PositionEntry, 'timestamp'>): number => {
  if (typeof timestamp === 'string') return parseIsoTime(timestamp)
  return typeof timestamp === 'number' ? timestamp : NO_TIME
}

/** The time of a position by the page's clock: its timestamp, but not after its arrival; the arrival without a timestamp. */
export const positionTimeMs = (entry: Pick<PositionEntry, 'timestamp'>, receivedAtMs: number): number => {
  const timeMs = entryTimeMs(entry)
  return timeMs < receivedAtMs ? timeMs : receivedAtMs
}
