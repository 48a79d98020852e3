import type { Broker, JoinOrLeave, MaybePromise, Position, Publication } from './broker.js'
import type { ResolvedChannel } from './channels.js'
import { UNSUBSCRIBE_INSUFFICIENT_STATE } from './codes.js'
import type { Conflator } from './conflation.js'
import { GroupBacklogs } from './conflation.js'
import type { DeltaPatches } from './delta.js'
import { DeltaChain } from './delta.js'
import type { Framing } from './framing.js'
import { Group } from './group.js'
import { type CoreMetrics, count } from './metrics.js'
import type { ChannelOptions } from './options.js'
import { joinOrLeavePush, quote } from './protocol.js'
import type { Subscription } from './subscription.js'

const UNKNOWN = -1

/** What was published in this turn and has not left yet. */
export interface FlushQueue {
  /** This group has something to be sent. */
  add(group: Group): void
  /** Sends it now: before somebody joins or leaves a group, so that all in it were in it for all that is queued. */
  flush(): void
}

/** What a comparison with the stream starts from: taken before the stream is read. */
export interface PositionCheck {
  readonly doubts: number
  readonly delivered: Position
}

/** Hears what is published without being a subscriber. */
export type ChannelObserver = (publication: Publication) => void

/** One channel as this node sees it: who listens, and how far its stream has been delivered. */
export class Channel {
  /** Counts up as this node opens channels, from 1. */
  number = 0
  readonly name: string
  readonly namespace: string
  options: ChannelOptions
  readonly #outgoing: FlushQueue
  readonly #metrics: CoreMetrics
  #conflator: Conflator | null
  readonly #pushPrefix: string
  readonly #groups: Group[] = []
  readonly #delta: DeltaChain
  /** Subscriptions whose clients have not been told yet where they begin. */
  #starting: Subscription[] = []
  /** Subscriptions that know of publications which have yet to arrive here. */
  #ahead: Subscription[] = []
  #offset = UNKNOWN
  #epoch = ''
  #size = 0
  #observers: Set<ChannelObserver> | null = null
  /** When its place was last compared with the stream's, and whether the two differed then. */
  checkedAt = 0
  #suspectOffset = UNKNOWN
  /** How often deliveries may have been lost, and how many of these times a comparison has cleared up. */
  #doubts = 0
  #clearedDoubts = 0
  /** Null while nobody has asked the broker for deliveries, or it could not. */
  #listening: MaybePromise<void> | null = null

  constructor(
    name: string,
    { namespace, options }: ResolvedChannel,
    outgoing: FlushQueue,
    metrics: CoreMetrics,
    patches: DeltaPatches,
    conflator: Conflator | null
  ) {
    this.name = name
    this.namespace = namespace
    this.options = options
    this.#outgoing = outgoing
    this.#metrics = metrics
    this.#delta = new DeltaChain(name, patches)
    this.#conflator = conflator
    this.#pushPrefix = `{"push":{"channel":${quote(name)},"pub":`
  }

  /** New options, for those who are subscribed too. */
  configure(options: ChannelOptions, conflator: Conflator | null): void {
    const isConflateSame = options.conflate === this.options.conflate
    this.options = options
    if (isConflateSame) return
    this.#outgoing.flush()
    this.#conflator = conflator
    for (const group of this.#groups) group.replaceBacklogs(this.#newBacklogs())
  }

  #newBacklogs(): GroupBacklogs | null {
    return this.#conflator === null ? null : new GroupBacklogs(this.#conflator)
  }

  /** Of the stream as far as it has been delivered; '' where nothing has. */
  get epoch(): string {
    return this.#epoch
  }

  /** The latest position that a client here was given; null where there is none. */
  get knownPosition(): Position | null {
    if (this.#offset === UNKNOWN) return null
    const offset = this.#ahead.reduce((top, { aheadOffset: aheadAt }) => Math.max(top, aheadAt), this.#offset)
    return { epoch: this.#epoch, offset }
  }

  get size(): number {
    return this.#size
  }

  get isUnused(): boolean {
    return this.#size === 0 && this.#observers === null
  }

  /** Whoever comes second waits as the first one does until deliveries flow; after a failure the next one asks again. */
  subscribeAtBroker(broker: Pick<Broker, 'subscribe'>): MaybePromise<void> {
    if (this.#listening !== null) return this.#listening
    const asked = broker.subscribe(this.name)
    this.#listening = asked
    if (asked instanceof Promise) {
      asked.catch(() => {
        this.#listening = null
      })
    }
    return asked
  }

  get isSubscribedAtBroker(): boolean {
    return this.#listening !== null
  }

  addObserver(observer: ChannelObserver): void {
    this.#observers ??= new Set()
    this.#observers.add(observer)
  }

  removeObserver(observer: ChannelObserver): void {
    this.#observers?.delete(observer)
    if (this.#observers?.size === 0) this.#observers = null
  }

  /** From now on nothing is missed: publications are set aside until the client knows its place. */
  begin(subscription: Subscription): void {
    this.#size++
    this.#starting.push(subscription)
  }

  /** Whether something behind the place will not be delivered any more: it was found missing, and passed over. */
  hasPassed(place: Position): boolean {
    return place.epoch === this.#epoch && place.offset < this.#offset
  }

  /** The client knows its place: from here on it gets what is published. */
  goLive(subscription: Subscription, place: Position): void {
    this.#starting = this.#starting.filter((each) => each !== subscription)
    subscription.early = null
    if (subscription.isPositioned) {
      if (this.#offset === UNKNOWN) {
        this.#offset = place.offset
        this.#epoch = place.epoch
      } else if (place.epoch === this.#epoch && place.offset > this.#offset) {
        subscription.aheadOffset = place.offset
        this.#ahead.push(subscription)
        return
      }
    }
    this.#join(subscription)
  }

  /** Whether a client that holds the publication at this offset can go on with differences. */
  canPatchFrom(offset: number): boolean {
    return this.#delta.holds(offset)
  }

  remove(subscription: Subscription): void {
    this.#size--
    if (subscription.group !== null) {
      this.#outgoing.flush()
      subscription.group.remove(subscription)
    } else {
      this.#starting = this.#starting.filter((each) => each !== subscription)
      this.#ahead = this.#ahead.filter((each) => each !== subscription)
    }
  }

  /** Encodes once for each group; what is queued leaves with the turn. */
  deliver(publication: Publication, epoch: string): void {
    if (publication.offset > 0 && !this.#moveTo(publication.offset, epoch)) return
    if (this.#observers !== null) for (const observer of this.#observers) observer(publication)
    for (const { early } of this.#starting) early?.push(publication)
    this.#advanceDelta(publication)
    for (const group of this.#groups) {
      if (group.subscriptions.length > 0 && group.enqueue(publication, epoch)) this.#outgoing.add(group)
    }
    if (this.#ahead.length === 0) return
    if (publication.offset === 0) this.#sendAhead(publication)
    else this.#catchUp(publication.offset)
  }

  pushJoinOrLeave(kind: JoinOrLeave, info: string): void {
    const text = joinOrLeavePush(this.name, kind, info)
    const frames = new Map<Framing, Buffer>()
    for (const { wantsJoinLeave, isConfirmed: isTold, outbox } of this.subscriptions()) {
      if (!wantsJoinLeave || !isTold) continue
      const { framing } = outbox.transport
      const frame = frames.get(framing) ?? framing(text)
      frames.set(framing, frame)
      count(this.#metrics.sent(outbox.transport.name, `push_${kind}`, this.namespace), frame.length)
      outbox.send(frame)
    }
  }

  subscriptions(): Subscription[] {
    return [...this.#groups.flatMap((group) => group.subscriptions), ...this.#starting, ...this.#ahead]
  }

  get hasPositions(): boolean {
    return this.#offset !== UNKNOWN && this.subscriptions().some(({ isPositioned }) => isPositioned)
  }

  /** The engine lost its connection for a while: what it shows then is a loss at the first comparison. */
  doubt(): void {
    this.#doubts++
  }

  get mayHaveGap(): boolean {
    return this.#doubts > this.#clearedDoubts
  }

  beginCheck(): PositionCheck {
    return { doubts: this.#doubts, delivered: { epoch: this.#epoch, offset: this.#offset } }
  }

  /**
   * Compares with the stream itself, for losses that no later publication reveals. What is on its way here looks like a
   * loss too, so only the same difference twice counts as one, unless there is reason to fear one. A connection that was
   * lost after the stream was read leaves the doubt, and the next comparison follows at once.
   */
  compare(top: Position, { doubts, delivered }: PositionCheck): void {
    const isBehind = top.epoch !== this.#epoch || top.offset > this.#offset
    // The stream has lost what was delivered from it, and would give its offsets to other publications.
    const hasGoneBack = top.epoch === delivered.epoch && top.offset < delivered.offset
    const isCertain = hasGoneBack || doubts > this.#clearedDoubts || this.#suspectOffset === this.#offset
    this.#clearedDoubts = Math.max(this.#clearedDoubts, doubts)
    if (!isCertain || !(isBehind || hasGoneBack)) {
      this.#suspectOffset = isBehind ? this.#offset : UNKNOWN
      return
    }
    this.#suspectOffset = UNKNOWN
    this.#offset = top.offset
    this.#epoch = top.epoch
    this.#losePosition()
  }

  /** False for what has been delivered before. */
  #moveTo(offset: number, epoch: string): boolean {
    const isNext = this.#offset === UNKNOWN || (epoch === this.#epoch && offset === this.#offset + 1)
    if (!isNext && epoch === this.#epoch && offset <= this.#offset) return false
    this.#offset = offset
    this.#epoch = epoch
    // Whoever counts on every publication has to come back for what is missing; the others take what comes.
    if (!isNext) this.#losePosition()
    return true
  }

  #losePosition(): void {
    for (const subscription of this.subscriptions()) {
      if (subscription.isPositioned && subscription.early === null) {
        const { subscriber } = subscription
        subscriber.contain(() => subscriber.loseSubscription(subscription, UNSUBSCRIBE_INSUFFICIENT_STATE))
      }
    }
  }

  #catchUp(offset: number): void {
    const there = this.#ahead.filter(({ aheadOffset: aheadAt }) => aheadAt <= offset)
    if (there.length === 0) return
    this.#ahead = this.#ahead.filter(({ aheadOffset: aheadAt }) => aheadAt > offset)
    for (const subscription of there) this.#join(subscription)
  }

  /** A publication that is not kept has no place in the stream, so it is for those too who are ahead of it. */
  #sendAhead(publication: Publication): void {
    for (const subscription of this.#ahead) {
      const { outbox, takesDelta } = subscription
      const frame = this.#groupOf(subscription).whole(publication)
      count(this.#metrics.sent(outbox.transport.name, 'push_publication', this.namespace), frame.length)
      outbox.send(frame)
      // It is what the client now takes a patch to be against, which the next one is not.
      if (takesDelta) subscription.needsFull = true
    }
  }

  #join(subscription: Subscription): void {
    this.#outgoing.flush()
    this.#groupOf(subscription).add(subscription)
  }

  #advanceDelta(publication: Publication): void {
    if (this.#groups.some((group) => group.takesDelta && group.subscriptions.length > 0))
      this.#delta.advance(publication, this.#epoch)
    else this.#delta.forget()
  }

  #groupOf({ takesDelta, outbox }: Subscription): Group {
    const { framing, name: transport } = outbox.transport
    const known = this.#groups.find((group) => group.framing === framing && group.takesDelta === takesDelta)
    if (known !== undefined) return known
    const group = new Group({
      framing,
      takesDelta,
      pushPrefix: this.#pushPrefix,
      delta: this.#delta,
      backlogs: this.#newBacklogs(),
      sent: this.#metrics.sent(transport, 'push_publication', this.namespace),
      conflated: (publications) => this.#metrics.conflated(this.namespace, publications)
    })
    this.#groups.push(group)
    return group
  }
}
