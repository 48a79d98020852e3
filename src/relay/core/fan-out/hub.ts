import type { Log } from '../../../shared/log.js'
import type { ResolvedChannel } from '../channel-names.js'
import type { Clocks } from '../clocks.js'
import type { CoreMetrics } from '../core-metrics.js'
import type { Delivery, JoinOrLeave } from '../engine.js'
import type { Conflator } from '../merging/keyed-list.js'
import type { ChannelOptions, ViewOptions } from '../options.js'
import type { Position, Publication } from '../publication.js'
import { Channel, type ChannelDependencies, type ChannelObserver } from './channel.js'
import type { FlushQueue } from './channel-groups.js'
import type { ViewCounts } from './channel-views.js'
import { ClosedSnapshots } from './closed-snapshots.js'
import type { DeltaPatches } from './delta.js'
import { flushGroups, type Group } from './group.js'
import { ViewPace } from './view-pace.js'

/** The fan-out of a traced publication at this node: from its delivery by the engine until everything is written. */
export interface TracedDelivery {
  /** `traceparent` of the publication. */
  readonly trace: string
  readonly channel: string
  readonly namespace: string
  readonly subscribers: number
  /** When the engine delivered it, in milliseconds since 1970. */
  readonly receivedAt: number
}

export interface HubDependencies extends Clocks {
  /** Runs the task at the end of the current turn of the event loop. */
  readonly atEndOfTurn: (task: () => void) => void
  /** Runs the task after this time. Returns a function that cancels it. */
  readonly setTimer: (task: () => void, ms: number) => () => void
  /** Compiles the options `conflate`, `entry_time` and those of views of a namespace. */
  readonly conflator: (conflate: string, entryTime: string | null, view: ViewOptions | null) => Conflator
  readonly log: Log
  readonly metrics: CoreMetrics
  /** Called after the fan-out of a traced publication; null if tracing is disabled. */
  readonly traceDelivery: ((delivery: TracedDelivery) => void) | null
}

/** An open channel of this node. */
export interface OpenChannel {
  readonly name: string
  readonly namespace: string
  /** Number of subscriptions. */
  readonly size: number
  /** Monotonic time of the last delivery, or of the opening before the first. */
  readonly silentSince: number
  /** Number of subscriptions with a limited rate, by deliveries per second. */
  readonly limited: ReadonlyMap<number, number>
  /** Null without views. */
  readonly viewCounts: ViewCounts | null
}

/** How often the age of a publication is measured in each namespace. */
const AGE_INTERVAL_MS = 200

interface PendingPublication {
  readonly channel: Channel
  readonly publication: Publication
  /** False if the delivery failed. */
  readonly isDelivered: boolean
  /** When the engine delivered it, in milliseconds since 1970; 0 if it is not traced. */
  readonly receivedAt: number
}

/** The channels with subscribers on this node. The engine delivers to the hub, which dispatches to the channels. */
export class Hub implements Delivery, FlushQueue {
  readonly #channels = new Map<string, Channel>()
  readonly #dependencies: HubDependencies
  readonly #channelDependencies: ChannelDependencies
  /** Positioned subscribers of a channel resubscribe if a publication took longer to arrive; 0 for no limit. */
  maxLagMs = 0
  #openedCount = 0
  /** Groups with frames that were not sent yet. */
  #pendingGroups: Group[] = []
  /** The publications in the pending groups, for metrics and traces. */
  #pendingPublications: PendingPublication[] = []
  /** Channels of the relay itself, which have no subscribers and are not listed. */
  readonly #internalChannels = new Map<string, ChannelObserver>()
  /** Monotonic time of the last measured age, by namespace. */
  readonly #ageSampledAt = new Map<string, number>()
  readonly #flush = (): void => this.flush()

  constructor(dependencies: HubDependencies, patches: DeltaPatches) {
    this.#dependencies = dependencies
    const { metrics, monotonicMs, setTimer, atEndOfTurn } = dependencies
    this.#channelDependencies = {
      flushQueue: this,
      metrics,
      patches,
      monotonicMs,
      setTimer,
      atEndOfTurn,
      closedSnapshots: new ClosedSnapshots(setTimer),
      viewPace: new ViewPace(monotonicMs, setTimer),
      deliveryFailed: (channel, error) => this.#failDelivery(channel, error)
    }
  }

  get channels(): ReadonlyMap<string, Channel> {
    return this.#channels
  }

  /** Channels with subscribers, and their subscriptions. A channel that only an operator observes is open without subscribers. */
  counts(): { readonly channels: number; readonly subscriptions: number } {
    let [channels, subscriptions] = [0, 0]
    for (const { size } of this.#channels.values()) {
      subscriptions += size
      if (size > 0) channels += 1
    }
    return { channels, subscriptions }
  }

  get hasPending(): boolean {
    return this.#pendingGroups.length > 0
  }

  /** Returns the channel, and creates it if it is not open yet. */
  open(name: string, resolved: ResolvedChannel): Channel {
    const existing = this.#channels.get(name)
    if (existing !== undefined) return existing
    const channel = new Channel(name, resolved, this.#channelDependencies, this.#conflatorOf(resolved.options))
    channel.sequence = ++this.#openedCount
    channel.silentSince = this.#dependencies.monotonicMs()
    this.#channels.set(name, channel)
    return channel
  }

  /** Applies changed options to an open channel. */
  configure(channel: Channel, options: ChannelOptions): void {
    channel.configure(options, this.#conflatorOf(options))
  }

  #conflatorOf({ conflate, entryTime, view }: ChannelOptions): Conflator | null {
    return conflate === null ? null : this.#dependencies.conflator(conflate, entryTime, view)
  }

  /** Returns false if the channel was removed before; another one may be open under its name. */
  remove(channel: Channel): boolean {
    if (this.#channels.get(channel.name) !== channel) return false
    channel.close()
    return this.#channels.delete(channel.name)
  }

  /** Passes the publications of an internal channel to the observer; null stops that. */
  observeInternal(channel: string, observer: ChannelObserver | null): void {
    if (observer === null) this.#internalChannels.delete(channel)
    else this.#internalChannels.set(channel, observer)
  }

  publication(channel: string, publication: Publication, epoch: string): void {
    const open = this.#channels.get(channel)
    if (open === undefined) {
      this.#internalChannels.get(channel)?.(publication)
      return
    }
    // A key can expire after a reload has changed its map to a stream, and another node may not have reloaded yet.
    if ((publication.key !== undefined) !== (open.options.map !== null)) return
    let isDelivered = true
    try {
      if (this.maxLagMs > 0 && this.#dependencies.nowMs() - publication.time > this.maxLagMs) open.endPositioned()
      open.deliver(publication, epoch)
    } catch (error) {
      isDelivered = false
      this.#failDelivery(open, error)
    }
    this.#pendingPublications.push({
      channel: open,
      publication,
      isDelivered,
      receivedAt: publication.trace === undefined ? 0 : this.#dependencies.nowMs()
    })
    if (this.#pendingPublications.length === 1) this.#dependencies.atEndOfTurn(this.#flush)
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    const open = this.#channels.get(channel)
    if (open === undefined) return
    open.addJoinOrLeave(kind, info)
    this.#dependencies.metrics.delivered(kind, open.namespace, 0, null)
  }

  mayHaveMissed(channel: string): void {
    this.#channels.get(channel)?.markPossibleGap()
  }

  *positions(): Iterable<readonly [channel: string, position: Position]> {
    for (const channel of this.#channels.values()) {
      const position = channel.knownPosition
      if (position !== null) yield [channel.name, position]
    }
  }

  add(group: Group): void {
    this.#pendingGroups.push(group)
  }

  flush(): void {
    const { monotonicMs, nowMs, metrics, traceDelivery } = this.#dependencies
    const publications = this.#pendingPublications
    // During a delivery a group can have frames before its publication is counted, so both lists are checked.
    if (publications.length === 0 && this.#pendingGroups.length === 0) return
    const groups = this.#pendingGroups
    this.#pendingGroups = []
    this.#pendingPublications = []
    const startedAt = monotonicMs()
    flushGroups(groups, (error) => this.#report(error))
    const seconds = (monotonicMs() - startedAt) / 1000
    const now = nowMs()
    for (const pending of publications) {
      const { channel, publication } = pending
      channel.silentSince = startedAt
      // Clocks of nodes differ, so the publication may appear to be from the future.
      metrics.delivered('publication', channel.namespace, seconds, Math.max(0, now - publication.time) / 1000)
      if (publication.trace !== undefined) {
        const { name, namespace, size } = channel
        const { trace } = publication
        traceDelivery?.({ trace, channel: name, namespace, subscribers: size, receivedAt: pending.receivedAt })
      }
      if (pending.isDelivered && channel.options.entryTime !== null) this.#sampleAge(pending, startedAt, now)
    }
  }

  /** Only some publications, because it reads all entries. */
  #sampleAge({ channel, publication }: PendingPublication, monotonicMs: number, nowMs: number): void {
    const { namespace } = channel
    if (monotonicMs - (this.#ageSampledAt.get(namespace) ?? Number.NEGATIVE_INFINITY) < AGE_INTERVAL_MS) return
    this.#ageSampledAt.set(namespace, monotonicMs)
    const time = channel.newestEntryTime(publication)
    if (time !== null) this.#dependencies.metrics.publicationAge(namespace, Math.max(0, nowMs - time) / 1000)
  }

  /**
   * Closes all subscribers of a channel after a failed delivery. It is unknown which of them received the message; they
   * reconnect and recover.
   */
  #failDelivery(channel: Channel, error: unknown): void {
    this.#report(error, channel.name)
    for (const { outbox } of channel.subscriptions()) outbox.fail(error, true)
  }

  #report(error: unknown, channel?: string): void {
    const { metrics, log } = this.#dependencies
    metrics.unexpectedError('delivery')
    log.error({ err: error, channel }, 'internal error in a delivery')
  }
}
