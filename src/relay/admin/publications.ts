import type { Publication } from '../core/broker.js'
import type { LivePublication } from './contract.js'

const MAX_LENGTH = 4096

/** As much of a publication as a person reads. */
export const shownPublication = (channel: string, { time, offset, data }: Publication): LivePublication => ({
  channel,
  time,
  offset,
  data: data.slice(0, MAX_LENGTH),
  isCut: data.length > MAX_LENGTH
})
