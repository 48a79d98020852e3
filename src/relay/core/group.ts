import type { Publication } from './broker.js'
import type { GroupBacklogs } from './conflation.js'
import type { DeltaChain } from './delta.js'
import type { Framing } from './framing.js'
import type { Traffic } from './metrics.js'
import type { Outbox } from './outbox.js'
import { publicationText } from './protocol.js'
import type { Subscription } from './subscription.js'

/** A joined write stays below this: one turn full of large publications does not make one huge copy. */
const JOIN_BYTES = 256 * 1024

/** The same bytes in as few buffers as the limit allows. */
export const joinFrames = (frames: readonly Buffer[]): readonly Buffer[] => {
  if (frames.length < 2) return frames
  const chunks: Buffer[] = []
  let start = 0
  let bytes = 0
  for (let index = 0; index < frames.length; index++) {
    const { length } = frames[index] as Buffer
    if (bytes > 0 && bytes + length > JOIN_BYTES) {
      chunks.push(Buffer.concat(frames.slice(start, index), bytes))
      start = index
      bytes = 0
    }
    bytes += length
  }
  chunks.push(Buffer.concat(frames.slice(start), bytes))
  return chunks
}

export interface GroupParts {
  readonly framing: Framing
  readonly takesDelta: boolean
  /** What stands before a publication in every push of the channel. */
  readonly pushPrefix: string
  readonly delta: DeltaChain
  /** Null where who falls behind gets everything, or is closed. */
  readonly backlogs: GroupBacklogs | null
  readonly sent: Traffic
  /** So many publications did not go out as they were. */
  readonly conflated: (publications: number) => void
}

/** What one turn of the event loop published. */
interface Turn {
  readonly publications: readonly Publication[]
  readonly frames: readonly Buffer[]
  /** The frames, in as few buffers as can be. */
  readonly chunks: readonly Buffer[]
  /** The same with the first publication whole, where somebody needs that. */
  wholeChunks: readonly Buffer[] | null
}

/** Hands bytes to a subscriber; how, the flush decides. */
export type Send = (outbox: Outbox, bytes: Buffer) => void

/**
 * The subscribers of a channel who get the same bytes: the same transport, and deltas or none. A publication is encoded
 * once for the group; those of one turn of the event loop are joined once and written to all.
 */
export class Group {
  readonly framing: Framing
  readonly takesDelta: boolean
  readonly subscriptions: Subscription[] = []
  /** Those of the subscriptions, place by place. */
  readonly #outboxes: Outbox[] = []
  readonly #parts: GroupParts
  #backlogs: GroupBacklogs | null
  #publications: Publication[] = []
  #frames: Buffer[] = []
  #epoch = ''

  constructor(parts: GroupParts) {
    this.framing = parts.framing
    this.takesDelta = parts.takesDelta
    this.#backlogs = parts.backlogs
    this.#parts = parts
  }

  /** What waits is merged by the rules of before: it goes to the queues of its subscribers. */
  replaceBacklogs(backlogs: GroupBacklogs | null): void {
    for (const subscription of this.subscriptions) {
      for (const bytes of this.takeBacklog(subscription)) subscription.outbox.send(bytes)
    }
    this.#backlogs = backlogs
  }

  add(subscription: Subscription): void {
    subscription.group = this
    subscription.index = this.subscriptions.push(subscription) - 1
    this.#outboxes.push(subscription.outbox)
  }

  /** The last one takes its place: no list is shifted when one of thousands leaves. */
  remove(subscription: Subscription): void {
    const last = this.subscriptions.pop() as Subscription
    this.#outboxes.pop()
    if (last !== subscription) {
      this.subscriptions[subscription.index] = last
      this.#outboxes[subscription.index] = last.outbox
      last.index = subscription.index
    }
    subscription.group = null
    this.#backlogs?.leave(subscription)
  }

  /** True for the first of a turn. */
  enqueue(publication: Publication, epoch: string): boolean {
    const patch = this.takesDelta ? this.#parts.delta.patch : null
    // A publication that is not kept has none.
    if (epoch !== '') this.#epoch = epoch
    this.#frames.push(patch === null ? this.whole(publication) : this.#frame(publication, patch, true))
    return this.#publications.push(publication) === 1
  }

  /** One publication, for a subscriber that is not in the group yet. */
  whole(publication: Publication): Buffer {
    // Who takes deltas gets all data as the text of JSON, whole ones too.
    const data = this.takesDelta ? JSON.stringify(publication.data) : publication.data
    return this.#frame(publication, data, false)
  }

  /** Hands what was published in this turn to every subscriber, in as few buffers as can be. */
  flush(send: Send): void {
    const frames = this.#frames
    const publications = this.#publications
    this.#frames = []
    this.#publications = []
    const turn: Turn = { publications, frames, chunks: joinFrames(frames), wholeChunks: null }
    this.#backlogs?.extend(publications)

    let waiting = 0
    let place = 0
    while (place < this.#outboxes.length) {
      // One client that fails is ended by itself; the loop goes on behind it, so that nothing is paid for each client.
      try {
        for (; place < this.#outboxes.length; place++) {
          const outbox = this.#outboxes[place] as Outbox
          // Of most, nothing but the outbox is looked at: in a fan-out to thousands everything else is cold memory.
          const isPlain = !this.takesDelta && !outbox.isBehind
          const chunks = isPlain ? turn.chunks : this.#chunksFor(this.subscriptions[place] as Subscription, turn)
          if (chunks === null) waiting++
          else for (let index = 0; index < chunks.length; index++) send(outbox, chunks[index] as Buffer)
        }
      } catch (error) {
        this.#outboxes[place]?.fail(error)
        place += 1
      }
    }
    this.#count(frames, this.subscriptions.length - waiting)
  }

  /** What waited for a client that has caught up, as few publications as can be. */
  takeBacklog(subscription: Subscription): readonly Buffer[] {
    const { backlog } = subscription
    if (backlog === null) return []
    const { backlogKnown } = subscription
    const publications = backlog.publications(backlogKnown)
    this.#parts.conflated(backlog.size - backlogKnown - publications.length)
    this.#backlogs?.leave(subscription)
    // What the client then holds is no publication of the channel, so the next one cannot be a difference to it.
    subscription.needsFull = true
    const frames = publications.map((publication) => this.whole(publication))
    this.#count(frames, 1)
    return joinFrames(frames)
  }

  /** What this one gets of the turn; null where it has to wait. */
  #chunksFor(subscription: Subscription, turn: Turn): readonly Buffer[] | null {
    if (this.#backlogs !== null && this.#waits(subscription, turn.publications)) return null
    if (!this.takesDelta || !subscription.needsFull) return turn.chunks
    subscription.needsFull = false
    turn.wholeChunks ??= this.#fromWhole(turn)
    return turn.wholeChunks
  }

  /** Publications of a client that is behind wait and are merged, where the namespace says how. */
  #waits(subscription: Subscription, publications: readonly Publication[]): boolean {
    const { outbox } = subscription
    if (subscription.backlog === null) {
      if (!outbox.isBehind) return false
      this.#backlogs?.join(subscription, publications)
    }
    if ((subscription.backlog?.length ?? 0) > outbox.maxBytes) outbox.overflow()
    return true
  }

  #count(frames: readonly Buffer[], receivers: number): void {
    const { messages, bytes } = this.#parts.sent
    messages.value += frames.length * receivers
    for (const { length } of frames) bytes.value += length * receivers
  }

  /** For those who hold nothing that the first one could be a difference to. */
  #fromWhole({ publications, frames }: Turn): readonly Buffer[] {
    const [first] = publications
    return first === undefined ? [] : joinFrames([this.whole(first), ...frames.slice(1)])
  }

  #frame(publication: Publication, data: string, isDelta: boolean): Buffer {
    return this.framing(`${this.#parts.pushPrefix}${publicationText(publication, this.#epoch, data, isDelta)}}}`)
  }
}

/**
 * Sends what one turn of the event loop published, one write per client. Measured with 1,000 subscribers and eight
 * publications in a turn, a fifth of the CPU time of a write for each. The way to that is in this file alone.
 */
export const flushGroups = (groups: readonly Group[], failed: (error: unknown) => void): void => {
  const [only] = groups
  if (only === undefined) return
  if (groups.length === 1) {
    flushGroup(only, sendNow, failed)
    return
  }
  const touched: Outbox[] = []
  for (const group of groups) flushGroup(group, (outbox, bytes) => gather(touched, outbox, bytes), failed)
  sendGathered(touched)
}

/** Where a group cannot be flushed none of its subscribers has got anything: they are closed, and the other groups go on. */
const flushGroup = (group: Group, send: Send, failed: (error: unknown) => void): void => {
  try {
    group.flush(send)
  } catch (error) {
    failed(error)
    for (const { outbox } of group.subscriptions) outbox.fail(error, true)
  }
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
  let index = 0
  while (index < touched.length) {
    // One client that fails is ended by itself; the loop goes on behind it, so that nothing is paid for each client.
    try {
      for (; index < touched.length; index++) {
        const outbox = touched[index] as Outbox
        const { gathered } = outbox
        outbox.gathered = null
        if (Array.isArray(gathered)) {
          if (!areSame(gathered, last)) {
            last = gathered
            lastJoined = joinFrames(gathered)
          }
          for (const bytes of lastJoined) outbox.send(bytes)
        } else if (gathered !== null) outbox.send(gathered)
      }
    } catch (error) {
      touched[index]?.fail(error)
      index += 1
    }
  }
}

const areSame = (left: readonly Buffer[], right: readonly Buffer[]): boolean =>
  left.length === right.length && left.every((bytes, index) => bytes === right[index])
