import type { Backlog } from './backlog.js'
import type { Publication } from './broker.js'
import type { Channel } from './channel.js'
import type { Moment } from './clocks.js'
import { NEVER } from './expiry.js'
import type { Group } from './group.js'
import type { Outbox } from './outbox.js'
import type { Unsubscribe } from './unsubscribe.js'

/** The connection as its subscriptions see it. */
export interface Subscriber {
  readonly outbox: Outbox
  readonly client: string
  readonly user: string
  /** Takes a subscription away; one that the server made takes the connection with it where its place was lost. */
  loseSubscription(subscription: Subscription, unsubscribe: Unsubscribe): void
  /** Runs something for this connection; an error in it ends this connection alone. */
  contain(work: () => void): void
}

/** One connection on one channel. */
export class Subscription {
  readonly channel: Channel
  readonly subscriber: Subscriber
  /** The subscriber's, one step nearer for those who send to thousands. */
  readonly outbox: Outbox
  /** Made by a token or the API rather than asked for by the client. */
  readonly isServerSide: boolean
  /** Its client counts on getting every publication of the stream. */
  isPositioned = false
  wantsJoinLeave = false
  isInPresence = false
  announcesJoinLeave = false
  takesDelta = false
  /** It has a token of its own, which can be refreshed. */
  hasToken = false
  /** JSON text of the `chan_info`. */
  info: string | null = null
  /** When its token runs out. */
  expiry: Moment = NEVER

  /** Its client knows that it is on the channel. */
  isTold = false
  /** Publications that arrive before the client has had its reply; null once it has. */
  early: Publication[] | null = []
  /** Why the relay ends the subscription as soon as its client has had the reply. */
  endsAfterReply: Unsubscribe | null = null
  /** A place the client was told about and the channel has yet to deliver; until then it gets nothing. */
  aheadAt = 0
  /** The client holds no base for a delta. */
  needsFull = true
  /** What waits, merged, while the client is behind. */
  backlog: Backlog | null = null
  /** How many of its publications the client had before it fell behind. */
  backlogKnown = 0
  group: Group | null = null
  /** Its place in the group's list. */
  index = -1

  constructor(channel: Channel, subscriber: Subscriber, isServerSide: boolean) {
    this.channel = channel
    this.subscriber = subscriber
    this.outbox = subscriber.outbox
    this.isServerSide = isServerSide
  }
}
