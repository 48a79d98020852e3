import { type Expiry, NEVER } from '../clocks.js'
import type { Push, SentPublication } from '../codec/codec.js'
import type { Framing, Transport } from '../codec/transport.js'
import type { Disconnect, Unsubscribe } from '../codes.js'
import type { CoreMetrics } from '../core-metrics.js'
import type { JoinOrLeave } from '../engine.js'
import type { Payload, Publication } from '../publication.js'
import type { Backlog } from './backlog.js'
import type { Channel } from './channel.js'
import type { Group } from './group.js'
import type { LoadingBuffer } from './loading-buffer.js'
import type { Outbox } from './outbox.js'
import type { Rate } from './rate-class.js'
import { selected, type TagFilter } from './tag-filter.js'
import { type PlacedPublication, partFor, type View } from './view.js'

// Circle of imports: a channel has groups, a group has subscriptions, and a subscription refers to its channel, its group and its
// backlog. The objects refer to each other, because the fan-out has no time to look them up.

/** The client of a subscription, as channels see it. */
export interface Subscriber {
  readonly outbox: Outbox
  readonly id: string
  readonly user: string
  push(push: Push, namespace: string): void
  /** Sends the replies that wait for later ones. */
  flushReplies(): void
  close(reason: Disconnect): void
  /** Ends a subscription on the server side. */
  endSubscription(subscription: Subscription, unsubscribe: Unsubscribe): void
  /** Runs work on behalf of this client. An unexpected error closes this client only. */
  closeOnError(work: () => void): void
}

/** The subscription of one client to one channel. */
export class Subscription {
  readonly channel: Channel
  readonly subscriber: Subscriber
  /** Copied from the subscriber: one object less to load in a fan-out to thousands of clients. */
  readonly outbox: Outbox
  /** Created by a token, the API or the backend, not requested by the client. */
  readonly isServerSide: boolean
  /** The client relies on receiving every publication of the stream. */
  isPositioned = false
  wantsJoinLeave = false
  isInPresence = false
  announcesJoinLeave = false
  takesDelta = false
  /** Only publications with matching tags are sent; null for all. */
  filter: TagFilter | null = null
  /** Deliveries per second; null for all. */
  rate: Rate | null = null
  /** Only entries in this part of the plane are sent; null for all. A subscription with a view has no position. */
  view: View | null = null
  /** `chan_info` as JSON text. */
  info: string | null = null
  /** Set by the subscription token, the backend or the API. */
  expiry: Expiry = NEVER

  /** Whether the subscribe reply was written, or queued behind earlier replies. */
  isConfirmed = false
  /** Publications that arrive before the client has processed the subscribe reply; null afterwards. */
  buffered: Publication[] | null = []
  /** Changes of a map that the client is still loading; null otherwise. `buffered` is not used then. */
  loading: LoadingBuffer | null = null
  /** Set if the relay ends the subscription before the client has processed the subscribe reply. */
  pendingUnsubscribe: Unsubscribe | null = null
  /** Position of the client if the channel has not delivered it yet. Nothing is sent until the channel reaches it. */
  aheadOffset = 0
  /** The client has no base for a delta. */
  needsFull = true
  /** Merged publications that wait while the client is behind. */
  backlog: Backlog | null = null
  /** Number of publications in the backlog that the client received before it fell behind. */
  backlogStart = 0
  group: Group | null = null
  /** Index in the list of the group. */
  groupIndex = -1

  constructor(channel: Channel, subscriber: Subscriber, isServerSide: boolean) {
    this.channel = channel
    this.subscriber = subscriber
    this.outbox = subscriber.outbox
    this.isServerSide = isServerSide
  }

  /** Keeps a publication until the client has processed its subscribe reply. */
  buffer(publication: Publication): void {
    if (this.loading === null) this.buffered?.push(publication)
    else this.loading.add(publication)
  }
}

/** The part of a publication that a subscriber receives; null if it receives nothing. */
export const receivedBy = ({ filter, view }: Subscription, publication: PlacedPublication): Publication | null =>
  view === null ? selected(filter, publication) : partFor(view, publication)

/** The same for a live subscriber outside a group. Publications that its tag filter or view rejects are counted, as in a group. */
export const deliveredTo = (subscription: Subscription, publication: PlacedPublication): Publication | null => {
  const received = receivedBy(subscription, publication)
  if (received === null) subscription.channel.countDropped(subscription)
  return received
}

/** Sends one publication to one subscriber, outside its group. Without a patch it is sent in full. */
export const pushPublication = (
  { channel, subscriber, outbox, takesDelta }: Subscription,
  publication: Publication,
  epoch: string,
  patch: Payload | null = null
): void => {
  const { codec } = outbox.transport.framing
  const data = takesDelta ? codec.deltaData(patch ?? publication.data) : publication.data
  const pub: SentPublication = { publication, epoch, data, isDelta: patch !== null }
  subscriber.push({ kind: 'pub', channel: channel.name, pub }, channel.namespace)
}

/** A publication without an offset is not part of the stream, so a subscription that is ahead of it receives it too. */
export const pushOutsideStream = (subscription: Subscription, publication: PlacedPublication, epoch: string): void => {
  const received = deliveredTo(subscription, publication)
  if (received === null) return
  pushPublication(subscription, received, epoch)
  // The client would apply the next delta to this publication, which is not its base.
  if (subscription.takesDelta) subscription.needsFull = true
}

type JoinOrLeavePush = Push & { readonly kind: JoinOrLeave }

/** Sends joins and leaves to several subscribers, with one write each after their replies. They are encoded once per framing. */
export const pushToAll = (
  subscriptions: readonly Subscription[],
  pushes: readonly JoinOrLeavePush[],
  metrics: CoreMetrics,
  namespace: string
): void => {
  for (const [{ framing, name }, outboxes] of byFraming(subscriptions)) {
    const frames = pushes.map((push) => ({ kind: push.kind, bytes: framing.frame(framing.codec.push(push)) }))
    for (const { kind, bytes } of frames) {
      const sent = metrics.sent(name, `push_${kind}`, namespace)
      sent.messages.value += outboxes.length
      sent.bytes.value += outboxes.length * bytes.length
    }
    const joined = Buffer.concat(frames.map(({ bytes }) => bytes))
    for (const outbox of outboxes) outbox.send(joined)
  }
}

/** Each framing belongs to one transport. */
const byFraming = (subscriptions: readonly Subscription[]): Iterable<readonly [Transport, readonly Outbox[]]> => {
  const known = new Map<Framing, readonly [Transport, Outbox[]]>()
  for (const { subscriber, outbox } of subscriptions) {
    // The reply to the subscribe command may be among them.
    subscriber.flushReplies()
    const { transport } = outbox
    const entry = known.get(transport.framing) ?? ([transport, []] as const)
    entry[1].push(outbox)
    known.set(transport.framing, entry)
  }
  return known.values()
}
