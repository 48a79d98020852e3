import type { PositionEntry } from '../../../schemas/realtime.js'

/** Other texts are not used: browsers parse them differently. */
const ISO_8601 = /^\d{4}-\d{2}-\d{2}T/

/** The timestamp of an entry in Unix milliseconds. NaN without one, so that every comparison with it is false. */
export const entryTimeMs = ({ timestamp }: Pick<PositionEntry, 'timestamp'>): number => {
  if (typeof timestamp === 'string') return ISO_8601.test(timestamp) ? Date.parse(timestamp) : Number.NaN
  return typeof timestamp === 'number' ? timestamp : Number.NaN
}

/** The time of a position by the page's clock: its timestamp, but not after its arrival; the arrival without a timestamp. */
export const positionTimeMs = (entry: Pick<PositionEntry, 'timestamp'>, receivedAtMs: number): number => {
  const timeMs = entryTimeMs(entry)
  return timeMs < receivedAtMs ? timeMs : receivedAtMs
}
