import { isObject } from '../../../src/shared/is-object.js'
import { type SoakChannel, type TextPayload, textOf } from './channels.js'

export interface Position {
  readonly epoch: string
  readonly offset: number
}

export interface Subscribed extends Position {
  readonly kind: 'subscribed'
  readonly wasRecovering: boolean
  readonly recovered: boolean
}

export interface Received {
  readonly kind: 'publication'
  readonly offset: number
  readonly n: number
  /** Whether the data is what was published under this number. Not decidable for a merged publication. */
  readonly isIntact: boolean
  /** On a conflated channel: the number of the newest publication of every key in it. */
  readonly entries: ReadonlyMap<string, number> | null
}

/** The stored data was lost: an idempotency key from before no longer prevents a second publication. */
export interface DataLost {
  readonly kind: 'data lost'
}

export type JournalEntry = Subscribed | Received | DataLost

/** Everything that one client received on one channel, in order. */
export class Journal {
  readonly client: string
  readonly channel: SoakChannel
  readonly entries: JournalEntry[] = []
  /** A client that joins for a while need not have received the end of the stream. */
  readonly isTemporary: boolean
  #position: Position | null = null
  #newest = 0

  constructor(client: string, channel: SoakChannel, isTemporary = false) {
    this.client = client
    this.channel = channel
    this.isTemporary = isTemporary
  }

  /** Where the client would recover from. */
  get position(): Position | null {
    return this.#position
  }

  /** The number of the publication that was received last. */
  get newest(): number {
    return this.#newest
  }

  subscribed(epoch: string, offset: number, wasRecovering: boolean, recovered: boolean): void {
    this.entries.push({ kind: 'subscribed', epoch, offset, wasRecovering, recovered })
    // The missed publications follow and advance the position from where it was.
    const continues = recovered && this.#position !== null && this.channel.guarantee !== 'newest'
    if (!continues && epoch !== '') this.#position = { epoch, offset }
  }

  received(offset: number, data: unknown): void {
    const entry = receivedEntry(this.channel, offset, data)
    this.entries.push(entry)
    this.#newest = entry.n
    if (this.#position !== null && offset > 0) this.#position = { epoch: this.#position.epoch, offset }
  }

  dataLost(): void {
    this.entries.push({ kind: 'data lost' })
  }
}

const receivedEntry = (channel: SoakChannel, offset: number, data: unknown): Received => {
  // The verifier reports data without the shape of a payload.
  const payload = isObject(data) ? data : {}
  const n = typeof payload.n === 'number' ? payload.n : Number.NaN
  if (channel.guarantee !== 'conflated') {
    const isIntact = !Number.isNaN(n) && payload.body === bodyOf(channel, n)
    return { kind: 'publication', offset, n, isIntact, entries: null }
  }
  const list = payload.data
  const isList = Array.isArray(list)
  const entries = new Map<string, number>(isList ? list.map(({ transmitterId, n }) => [transmitterId, n]) : [])
  return { kind: 'publication', offset, n, isIntact: isList && entries.size === list.length, entries }
}

/** The last one of each channel: all clients receive the same publication at about the same time. */
const bodies = new Map<string, TextPayload>()

const bodyOf = (channel: SoakChannel, n: number): string => {
  const known = bodies.get(channel.name)
  if (known?.n === n) return known.body
  const payload = textOf(channel, n)
  bodies.set(channel.name, payload)
  return payload.body
}
