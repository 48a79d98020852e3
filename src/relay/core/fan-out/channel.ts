import { isSameKind, type ResolvedChannel } from '../channel-names.js'
import { DISCONNECT_INAPPROPRIATE_PROTOCOL, UNSUBSCRIBE_INSUFFICIENT_STATE } from '../codes.js'
import type { Broker, History, JoinOrLeave } from '../engine.js'
import type { MaybePromise } from '../maybe-promise.js'
import { type Conflator, newestTime } from '../merging/keyed-list.js'
import type { ChannelOptions } from '../options.js'
import type { Position, Publication } from '../publication.js'
import { BrokerSubscription } from './broker-subscription.js'
import { ChannelFilters } from './channel-filters.js'
import { ChannelGroups, type GroupsDependencies } from './channel-groups.js'
import type { PositionedSnapshot } from './channel-snapshot.js'
import { ChannelViews, type ViewCounts } from './channel-views.js'
import { GapChecks, type PositionCheck } from './gap-checks.js'
import { JoinsAndLeaves } from './joins-and-leaves.js'
import type { Rate } from './rate-class.js'
import { type SnapshotDependencies, SnapshotSource } from './snapshot-source.js'
import { pushOutsideStream, type Subscription } from './subscription.js'
import { passes } from './tag-filter.js'
import { isSameView } from './view.js'

const UNKNOWN = -1

/** Receives the publications of a channel without being a subscriber. */
export type ChannelObserver = (publication: Publication) => void

export interface ChannelDependencies extends GroupsDependencies, SnapshotDependencies {
  readonly atEndOfTurn: (task: () => void) => void
  /** A delivery failed for an unexpected reason; it is unknown which subscribers received it. */
  deliveryFailed(channel: Channel, error: unknown): void
}

/** An open channel of this node: its subscriptions, and how far its stream was delivered. */
export class Channel {
  /** Ascending in the order in which this node opened its channels, from 1. */
  sequence = 0
  readonly name: string
  readonly namespace: string
  options: ChannelOptions
  /** Monotonic time of the last delivery, or of the opening before the first. */
  silentSince = 0
  /** Time of the last position check. */
  checkedAt = 0
  /** Whether a position check has been started and not finished. */
  isCheckingPosition = false
  readonly filters = new ChannelFilters()
  readonly #dependencies: ChannelDependencies
  /** Null before the first one. */
  #joinsAndLeaves: JoinsAndLeaves | null = null
  #conflator: Conflator | null
  readonly #snapshots: SnapshotSource
  /** Null without a subscription with a view. */
  #views: ChannelViews | null = null
  readonly #groups: ChannelGroups
  /** Subscriptions whose clients have not received their starting position yet. */
  readonly #pending = new Set<Subscription>()
  /** Subscriptions whose starting position includes publications that were not delivered to this node yet. */
  #ahead: Subscription[] = []
  #offset = UNKNOWN
  #epoch = ''
  #size = 0
  /** Number of subscriptions whose client relies on receiving every publication. */
  #positioned = 0
  #observers: Set<ChannelObserver> | null = null
  readonly #gaps = new GapChecks()
  readonly #brokerSubscription = new BrokerSubscription()

  constructor(
    name: string,
    { namespace, options }: ResolvedChannel,
    dependencies: ChannelDependencies,
    conflator: Conflator | null
  ) {
    this.name = name
    this.namespace = namespace
    this.options = options
    this.#dependencies = dependencies
    this.#conflator = conflator
    this.#groups = new ChannelGroups(name, namespace, conflator, dependencies, (error) =>
      dependencies.deliveryFailed(this, error)
    )
    this.#snapshots = new SnapshotSource(name, options, conflator, dependencies)
  }

  /** Nothing uses the channel any more. */
  close(): void {
    this.#joinsAndLeaves?.clear()
    this.#snapshots.close()
  }

  configure(options: ChannelOptions, conflator: Conflator | null): void {
    const { conflate, entryTime, snapshot, view } = this.options
    const isConflateSame =
      options.conflate === conflate && options.entryTime === entryTime && isSameView(options.view, view)
    if (!isSameKind(options, this.options)) for (const each of this.subscriptions()) this.#restart(each)
    this.options = options
    // Clients that cannot receive binary data resubscribe, and are rejected.
    if (options.publicationDataFormat === 'binary') for (const each of this.#jsonOnly) this.#restart(each)
    if (!isConflateSame) this.#conflator = conflator
    this.#snapshots.configure(options, this.#conflator)
    if (!isConflateSame) this.#groups.configure(conflator)
    if (isConflateSame && options.snapshot === snapshot) return
    for (const each of this.subscriptions()) if (each.view !== null) this.#restart(each)
    this.#views?.configure(this.#conflator, options)
  }

  /** The newest entry of every key in the history, and its position; null if the namespace has no snapshots. */
  readSnapshot(history: History, subscription: Subscription): MaybePromise<PositionedSnapshot> | null {
    return this.#snapshots.read(history, subscription, this.#views?.places ?? null, () => this.delivered)
  }

  /** Subscriptions of clients that can receive JSON only. */
  get #jsonOnly(): readonly Subscription[] {
    return this.subscriptions().filter(({ outbox }) => !outbox.transport.framing.codec.allowsBinary)
  }

  /** The client subscribes again. */
  #restart(subscription: Subscription): void {
    const { subscriber } = subscription
    subscriber.closeOnError(() => subscriber.endSubscription(subscription, UNSUBSCRIBE_INSUFFICIENT_STATE))
  }

  /** A JSON message cannot contain other bytes, and a client that does not receive them would have a gap. */
  #closeJsonClients(publication: Publication): void {
    for (const { subscriber, filter } of this.#jsonOnly)
      if (passes(filter, publication)) subscriber.close(DISCONNECT_INAPPROPRIATE_PROTOCOL)
  }

  /** Epoch of the delivered stream; '' before the first delivery. */
  get epoch(): string {
    return this.#epoch
  }

  /** The latest position that a client of this node received; null if there is none. */
  get knownPosition(): Position | null {
    if (this.#offset === UNKNOWN) return null
    const offset = this.#ahead.reduce((highest, { aheadOffset }) => Math.max(highest, aheadOffset), this.#offset)
    return { epoch: this.#epoch, offset }
  }

  /** The position up to which the stream was delivered; null before the first delivery. */
  get delivered(): Position | null {
    return this.#offset === UNKNOWN ? null : { epoch: this.#epoch, offset: this.#offset }
  }

  get size(): number {
    return this.#size
  }

  /** Number of subscriptions with a limited rate, by rate. */
  get limited(): ReadonlyMap<Rate, number> {
    return this.#groups.limited
  }

  /** Null without views. */
  get viewCounts(): ViewCounts | null {
    const counts = this.#views?.counts
    return counts === undefined || counts.subscribers + counts.unlimited === 0 ? null : counts
  }

  get isUnused(): boolean {
    return this.#size === 0 && this.#observers === null
  }

  subscribeAtBroker(broker: Pick<Broker, 'subscribe'>): MaybePromise<void> {
    return this.#brokerSubscription.open(broker, this, this.#dependencies.metrics)
  }

  get isSubscribedAtBroker(): boolean {
    return this.#brokerSubscription.exists
  }

  addObserver(observer: ChannelObserver): void {
    this.#observers ??= new Set()
    this.#observers.add(observer)
  }

  removeObserver(observer: ChannelObserver): void {
    this.#observers?.delete(observer)
    if (this.#observers?.size === 0) this.#observers = null
  }

  get views(): ChannelViews {
    this.#views ??= new ChannelViews(this.#conflator, this.options, (key) => this.#snapshots.find(key))
    return this.#views
  }

  /** Adds a subscription whose starting position is not known yet. From now on its publications are buffered. */
  addPending(subscription: Subscription): void {
    this.#size++
    if (subscription.isPositioned) this.#positioned++
    if (subscription.filter !== null) this.filters.open(subscription.filter)
    this.#pending.add(subscription)
  }

  /** Whether publications after the position were skipped on this node and will never be delivered. */
  hasPassed(position: Position): boolean {
    return position.epoch === this.#epoch && position.offset < this.#offset
  }

  /**
   * Starts live delivery to a pending subscription whose client is at the given position. `missed` are publications up to this
   * position that a client with a limited rate has not received yet.
   */
  goLive(subscription: Subscription, position: Position, missed: readonly Publication[] = []): void {
    this.#pending.delete(subscription)
    subscription.buffered = null
    // A map without a stream has no epoch.
    if (subscription.isPositioned && position.epoch !== '') {
      if (this.#offset === UNKNOWN) {
        this.#offset = position.offset
        this.#epoch = position.epoch
      } else if (position.epoch === this.#epoch && position.offset > this.#offset) {
        subscription.aheadOffset = position.offset
        this.#ahead.push(subscription)
        // All of them are without an offset: the client's position is beyond everything that this node has delivered.
        for (const publication of missed) pushOutsideStream(subscription, publication, this.#epoch)
        return
      }
    }
    this.#groups.add(subscription, missed, this.#epoch)
  }

  /** A client has received this publication. Returns whether it can receive the next one as a delta. */
  joinDeltas(publication: Publication): boolean {
    return publication.offset === this.#offset && this.#groups.joinDeltas(publication)
  }

  remove(subscription: Subscription): void {
    this.#size--
    if (subscription.isPositioned) this.#positioned--
    if (subscription.filter !== null) this.filters.close(subscription.filter)
    if (subscription.view !== null) this.#views?.close(subscription.view)
    // Without a view, publications are not placed.
    if (this.#views?.isEmpty) this.#views = null
    if (subscription.group !== null) this.#groups.remove(subscription)
    else {
      this.#pending.delete(subscription)
      this.#ahead = this.#ahead.filter((each) => each !== subscription)
    }
  }

  /** Time of the newest entry, in milliseconds since 1970; null if the publication has no entry with a time. */
  newestEntryTime({ data }: Publication): number | null {
    return typeof data === 'string' ? newestTime(this.#conflator?.read(data) ?? null) : null
  }

  deliver(publication: Publication, epoch: string): void {
    if (publication.offset > 0 && !this.#advanceTo(publication.offset, epoch)) return
    if (typeof publication.data !== 'string' && this.options.publicationDataFormat !== 'binary')
      this.#closeJsonClients(publication)
    this.#snapshots.deliver(publication, epoch)
    if (this.#observers !== null) for (const observer of this.#observers) observer(publication)
    const placed = this.#views === null ? publication : this.#views.place(publication)
    for (const subscription of this.#pending) subscription.buffer(placed)
    this.#groups.deliver(placed, epoch)
    if (this.#ahead.length === 0) return
    if (publication.offset > 0) this.#joinAheadUpTo(publication.offset)
    else for (const subscription of this.#ahead) pushOutsideStream(subscription, placed, this.#epoch)
  }

  /** A subscription outside the groups did not receive a publication because of its tag filter or view. */
  countDropped({ view }: Subscription): void {
    this.#dependencies.metrics[view === null ? 'filteredOut' : 'outsideView'](this.namespace, 1)
  }

  addJoinOrLeave(kind: JoinOrLeave, info: string): void {
    this.#joinsAndLeaves ??= new JoinsAndLeaves(this, this.#dependencies)
    this.#joinsAndLeaves.add(kind, info)
  }

  subscriptions(): Subscription[] {
    return [...this.#groups.all.flatMap((group) => group.subscriptions), ...this.#pending, ...this.#ahead]
  }

  /** Whether a check can find a loss that matters to a client. */
  get needsPositionCheck(): boolean {
    return this.#offset !== UNKNOWN && this.#positioned > 0
  }

  /** Deliveries may have been lost, for example because the engine was disconnected. The next check decides. */
  markPossibleGap(): void {
    this.#gaps.mark()
  }

  get mayHaveGap(): boolean {
    return this.#gaps.mayHaveGap
  }

  /**
   * Forgets possible gaps that concern no client. A client that subscribes later reads its own position, which must not be
   * compared with the one before the gap.
   */
  clearIrrelevantGaps(): void {
    if (this.#positioned > 0) return
    this.#gaps.clear()
    this.#offset = UNKNOWN
    this.#views?.places?.clear()
  }

  startPositionCheck(): PositionCheck {
    this.isCheckingPosition = true
    return this.#gaps.start({ epoch: this.#epoch, offset: this.#offset })
  }

  /** Clients start again if the channel has lost deliveries before the end of the stream. */
  finishPositionCheck(end: Position, check: PositionCheck): void {
    if (!this.#gaps.finish(end, { epoch: this.#epoch, offset: this.#offset }, check)) return
    this.#snapshots.clear()
    this.#views?.places?.clear()
    this.#offset = end.offset
    this.#epoch = end.epoch
    this.endPositioned()
  }

  /** Returns false for a publication that was already delivered. */
  #advanceTo(offset: number, epoch: string): boolean {
    const isNext = this.#offset === UNKNOWN || (epoch === this.#epoch && offset === this.#offset + 1)
    if (!isNext && epoch === this.#epoch && offset <= this.#offset) return false
    this.#offset = offset
    this.#epoch = epoch
    if (!isNext) {
      this.#views?.places?.clear()
      this.endPositioned()
    }
    return true
  }

  /** After a gap or a long lag: clients with a position resubscribe and recover; the others continue without what they missed. */
  endPositioned(): void {
    for (const subscription of this.subscriptions()) {
      if (!subscription.isPositioned) continue
      if (subscription.buffered === null) this.#restart(subscription)
      else subscription.loading?.lose()
    }
  }

  /** For channels without offsets, where no check can find what was lost: after a possible gap all clients start again. */
  endAfterGap(): void {
    this.#gaps.clear()
    this.endPositioned()
  }

  #joinAheadUpTo(offset: number): void {
    const reached = this.#ahead.filter(({ aheadOffset }) => aheadOffset <= offset)
    if (reached.length === 0) return
    this.#ahead = this.#ahead.filter(({ aheadOffset }) => aheadOffset > offset)
    for (const subscription of reached) this.#groups.add(subscription, [], this.#epoch)
  }
}
