import type { PublicationContext, SubscribedContext } from 'centrifuge'
import type { Test } from 'tap'

/** The publications that a client received without a failed recovery in between. */
interface Session {
  readonly epoch: string
  /** The offset of the client at the start. */
  readonly from: number
  readonly received: (readonly [offset: number, n: number])[]
}

export interface Position {
  readonly epoch: string
  readonly offset: number
}

/** A publication `{ n }` that the relay has confirmed. */
export interface AcknowledgedPublication extends Position {
  readonly channel: string
  readonly n: number
}

/** Records everything that a client receives on a channel. A failed recovery starts a new session. */
export class SequenceSubscriber {
  readonly channel: string
  readonly sessions: Session[] = []

  constructor(channel: string) {
    this.channel = channel
  }

  subscribed({ streamPosition, wasRecovering, recovered }: SubscribedContext): void {
    if (streamPosition === undefined) throw new Error('a subscription without a position')
    if (wasRecovering && recovered) return
    this.sessions.push({ epoch: streamPosition.epoch, from: streamPosition.offset, received: [] })
  }

  publication({ offset = 0, data }: PublicationContext): void {
    this.sessions.at(-1)?.received.push([offset, data.n])
  }

  isAt({ epoch, offset }: Position): boolean {
    const last = this.sessions.at(-1)
    return last?.epoch === epoch && (last.received.at(-1)?.[0] ?? last.from) === offset
  }
}

/** Checks that nothing is missing, duplicated or out of order within a session, and that all clients received the same. */
export const checkSequences = (
  t: Test,
  subscribers: readonly SequenceSubscriber[],
  acknowledged: readonly AcknowledgedPublication[]
): void => {
  const numbers = new Map<string, number>()
  let wrongOffsets = 0
  let differences = 0
  for (const { channel, sessions } of subscribers) {
    for (const { epoch, from, received } of sessions) {
      for (const [index, [offset, n]] of received.entries()) {
        if (offset !== from + index + 1) wrongOffsets++
        const position = `${channel} ${epoch} ${offset}`
        if ((numbers.get(position) ?? n) !== n) differences++
        numbers.set(position, n)
      }
    }
  }
  t.equal(wrongOffsets, 0, 'no publication is missing, duplicated or out of order')
  t.equal(differences, 0, 'all clients receive the same publications')
  for (const { channel, n, epoch, offset } of acknowledged) {
    const position = `${channel} ${epoch} ${offset}`
    if (numbers.has(position) && numbers.get(position) !== n)
      t.fail(`${position} is not the publication that the publisher's reply names`)
  }
  const perEpoch = [...numbers].map(([position, n]) => `${position.split(' ')[1]} ${n}`)
  t.equal(new Set(perEpoch).size, perEpoch.length, 'no publication was published twice')
}
