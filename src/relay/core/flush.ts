import type { Group } from './group.js'
import { joined } from './join.js'
import type { Outbox } from './outbox.js'

/**
 * Sends what one turn of the event loop published, one write per client. Measured with 1,000 subscribers and eight
 * publications in a turn, a fifth of the CPU time of a write for each. The way to that is in this file alone.
 */
export const flushGroups = (groups: readonly Group[]): void => {
  const [only] = groups
  if (only === undefined) return
  if (groups.length === 1) {
    only.flush(sendNow)
    return
  }
  const touched: Outbox[] = []
  for (const group of groups) group.flush((outbox, bytes) => gather(touched, outbox, bytes))
  sendGathered(touched)
}

const sendNow = (outbox: Outbox, bytes: Buffer): void => outbox.send(bytes)

/** Clients on several of the channels get one write all the same; most are on one, and get the channel's own buffer. */
const gather = (touched: Outbox[], outbox: Outbox, bytes: Buffer): void => {
  const { gathered } = outbox
  if (gathered === null) {
    outbox.gathered = bytes
    touched.push(outbox)
  } else if (Array.isArray(gathered)) gathered.push(bytes)
  else outbox.gathered = [gathered, bytes]
}

const sendGathered = (touched: readonly Outbox[]): void => {
  // Neighbours are mostly on the same channels, so what was joined for one fits the next.
  let last: readonly Buffer[] = []
  let lastJoined: readonly Buffer[] = []
  for (const outbox of touched) {
    const { gathered } = outbox
    outbox.gathered = null
    if (Array.isArray(gathered)) {
      if (!areSame(gathered, last)) {
        last = gathered
        lastJoined = joined(gathered)
      }
      for (const bytes of lastJoined) outbox.send(bytes)
    } else if (gathered !== null) outbox.send(gathered)
  }
}

const areSame = (left: readonly Buffer[], right: readonly Buffer[]): boolean =>
  left.length === right.length && left.every((bytes, index) => bytes === right[index])
