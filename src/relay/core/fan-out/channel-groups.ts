import type { Framing } from '../codec/transport.js'
import type { CoreMetrics } from '../core-metrics.js'
import type { Conflator } from '../merging/keyed-list.js'
import type { Publication } from '../publication.js'
import { GroupBacklogs } from './backlog.js'
import { DeltaChain, type DeltaPatches } from './delta.js'
import { Group } from './group.js'
import { type Rate, RateClass } from './rate-class.js'
import type { Subscription } from './subscription.js'
import { NO_TAGS, removalBy, type TagFilter, type Tags, tagsOf } from './tag-filter.js'
import type { PlacedPublication } from './view.js'
import { ViewGroups } from './view-groups.js'

/** Collects groups with unsent frames until the end of the turn. */
export interface FlushQueue {
  add(group: Group): void
  /** Sends everything now. Called before the members of a group change, so that queued frames reach the right members. */
  flush(): void
}

/** The services that the groups of a channel use. */
export interface GroupsDependencies {
  readonly flushQueue: FlushQueue
  readonly metrics: CoreMetrics
  readonly patches: DeltaPatches
  readonly monotonicMs: () => number
  readonly setTimer: (task: () => void, ms: number) => () => void
}

interface GroupKey {
  readonly takesDelta: boolean
  readonly filter: TagFilter | null
  /** Null for a group that sends no deltas. */
  readonly delta: DeltaChain | null
}

/** A publication for the groups whose filters match the tags, and its frame for each framing that needs it. */
interface SharedFrames {
  readonly publication: Publication
  readonly tags: Tags
  readonly frames: Map<Framing, Buffer>
}

/** The live subscriptions of a channel, in groups that receive identical bytes. */
export class ChannelGroups {
  readonly #channel: string
  readonly #namespace: string
  readonly #dependencies: GroupsDependencies
  readonly #failed: (error: unknown) => void
  #conflator: Conflator | null
  readonly #delta: DeltaChain
  /** Groups that receive every publication. */
  readonly #plain: Group[] = []
  /** Groups with a tag filter, by framing and filter. */
  readonly #filtered = new Map<string, Group>()
  /** Subscribers with a limited rate, by rate and filter. */
  readonly #rates = new Map<string, RateClass>()
  /** Null before the first subscription with a view. */
  #views: ViewGroups | null = null

  constructor(
    channel: string,
    namespace: string,
    conflator: Conflator | null,
    dependencies: GroupsDependencies,
    failed: (error: unknown) => void
  ) {
    this.#channel = channel
    this.#namespace = namespace
    this.#conflator = conflator
    this.#dependencies = dependencies
    this.#failed = failed
    this.#delta = new DeltaChain(channel, dependencies.patches)
  }

  get all(): Group[] {
    const limited = [...this.#rates.values()].flatMap(({ groups }) => groups)
    return [...this.#plain, ...this.#filtered.values(), ...limited, ...(this.#views?.all ?? [])]
  }

  /** Number of subscriptions by rate. */
  get limited(): ReadonlyMap<Rate, number> {
    const counts = new Map<Rate, number>()
    for (const { rate, groups } of [...this.#rates.values(), ...(this.#views?.rateClasses ?? [])])
      for (const { subscriptions } of groups) counts.set(rate, (counts.get(rate) ?? 0) + subscriptions.length)
    return counts
  }

  /** Applies changed conflation rules. */
  configure(conflator: Conflator | null): void {
    this.#dependencies.flushQueue.flush()
    this.#conflator = conflator
    for (const group of this.all) group.replaceBacklogs(this.#newBacklogs())
    for (const rateClass of this.#rates.values()) rateClass.configure(conflator ?? UNMERGED)
    this.#views?.configure(conflator ?? UNMERGED)
  }

  /** A client has received this publication, the last one of the stream. Returns whether it can apply the next patch. */
  joinDeltas(publication: Publication): boolean {
    return this.#delta.joinDeltas(publication)
  }

  /** `missed` are publications that a client with a limited rate has not received yet. */
  add(subscription: Subscription, missed: readonly Publication[], epoch: string): void {
    this.#dependencies.flushQueue.flush()
    const { rate, view } = subscription
    if (view !== null) {
      this.#views ??= this.#newViews()
      this.#views.add(subscription, view, missed)
    } else if (rate === null) this.#groupOf(subscription).add(subscription)
    else this.#rateClassOf(rate, subscription.filter).add(subscription, missed, epoch)
  }

  /** Removes a subscription that is in a group. */
  remove(subscription: Subscription): void {
    this.#dependencies.flushQueue.flush()
    const { group, rate, filter, view } = subscription
    if (view !== null) {
      this.#views?.remove(subscription, view)
      return
    }
    if (rate !== null) {
      if (this.#rateClassOf(rate, filter).remove(subscription)) this.#rates.delete(rateKey(rate, filter))
      return
    }
    group?.remove(subscription)
    const key = filterKeyOf(subscription)
    if (key !== null && group?.subscriptions.length === 0) this.#filtered.delete(key)
  }

  /** Encodes the publication once per group; the frames are sent at the end of the turn, or when the rate allows it. */
  deliver(publication: PlacedPublication, epoch: string): void {
    const { flushQueue } = this.#dependencies
    this.#advanceDelta(publication, epoch)
    for (const group of this.#plain) {
      if (group.subscriptions.length > 0 && group.enqueue(publication, epoch)) flushQueue.add(group)
    }
    const tags = this.#hasFilters ? tagsOf(publication) : NO_TAGS
    if (this.#filtered.size > 0) this.#deliverFiltered(publication, tags, epoch)
    for (const rateClass of this.#rates.values()) this.#deliverLimited(rateClass, publication, tags, epoch)
    this.#views?.deliver(publication)
  }

  get #hasFilters(): boolean {
    if (this.#filtered.size > 0) return true
    for (const { filter } of this.#rates.values()) if (filter !== null) return true
    return false
  }

  #advanceDelta(publication: Publication, epoch: string): void {
    if (this.#plain.some((group) => group.takesDelta && group.subscriptions.length > 0))
      this.#delta.advance(publication, epoch)
    else this.#delta.reset()
  }

  /** Clients choose their filters, so there may be many groups. They share one frame per framing. */
  #deliverFiltered(publication: Publication, tags: Tags, epoch: string): void {
    const { metrics } = this.#dependencies
    const { previous } = publication
    const matching: SharedFrames = { publication, tags, frames: new Map() }
    // For groups whose filter matched the entry of a map until now.
    const leaving: SharedFrames | null =
      previous === undefined ? null : { publication: removalBy(publication), tags: tagsOf(previous), frames: new Map() }
    for (const group of this.#filtered.values()) {
      const { filter, subscriptions } = group
      if (filter?.matches(matching.tags)) this.#enqueueShared(group, matching, epoch)
      else if (leaving !== null && filter?.matches(leaving.tags)) this.#enqueueShared(group, leaving, epoch)
      else metrics.filteredOut(this.#namespace, subscriptions.length)
    }
  }

  #enqueueShared(group: Group, { publication, frames }: SharedFrames, epoch: string): void {
    const { framing } = group
    const frame = frames.get(framing) ?? group.fullFrame(publication, epoch)
    frames.set(framing, frame)
    if (group.enqueue(publication, epoch, frame)) this.#dependencies.flushQueue.add(group)
  }

  #deliverLimited(rateClass: RateClass, publication: Publication, tags: Tags, epoch: string): void {
    const { filter, groups } = rateClass
    if (filter === null || filter.matches(tags)) rateClass.deliver(publication, epoch)
    else
      for (const { subscriptions } of groups)
        this.#dependencies.metrics.filteredOut(this.#namespace, subscriptions.length)
  }

  #groupOf(subscription: Subscription): Group {
    const { takesDelta, filter, outbox } = subscription
    const { framing } = outbox.transport
    const key = filterKeyOf(subscription)
    const existing =
      key === null
        ? this.#plain.find((group) => group.framing === framing && group.takesDelta === takesDelta)
        : this.#filtered.get(key)
    if (existing !== undefined) return existing
    const group = this.#newGroup(subscription, { takesDelta, filter, delta: this.#delta })
    if (key === null) this.#plain.push(group)
    else this.#filtered.set(key, group)
    return group
  }

  #rateClassOf(rate: Rate, filter: TagFilter | null): RateClass {
    const key = rateKey(rate, filter)
    const rateClass = this.#rates.get(key) ?? this.#newRateClass(rate, filter)
    this.#rates.set(key, rateClass)
    return rateClass
  }

  #newRateClass(rate: Rate, filter: TagFilter | null): RateClass {
    const { monotonicMs, setTimer, flushQueue } = this.#dependencies
    return new RateClass({
      rate,
      filter,
      conflator: this.#conflator ?? UNMERGED,
      monotonicMs,
      setTimer,
      // A merged publication is not part of the stream, so there are no deltas between them.
      newGroup: ({ outbox, takesDelta }) => this.#newGroup({ outbox }, { takesDelta, filter, delta: null }),
      flush: (groups) => {
        for (const group of groups) flushQueue.add(group)
        flushQueue.flush()
      },
      failed: this.#failed
    })
  }

  #newViews(): ViewGroups {
    return new ViewGroups({
      newGroup: (subscription) => this.#newGroup(subscription, { takesDelta: false, filter: null, delta: null }),
      newRateClass: (rate) => this.#newRateClass(rate, null),
      enqueued: (group) => this.#dependencies.flushQueue.add(group),
      dropped: (subscribers) => this.#dependencies.metrics.outsideView(this.#namespace, subscribers)
    })
  }

  #newGroup({ outbox }: Pick<Subscription, 'outbox'>, { takesDelta, filter, delta }: GroupKey): Group {
    const { framing, name: transport } = outbox.transport
    const { metrics } = this.#dependencies
    return new Group({
      framing,
      takesDelta,
      filter,
      channel: this.#channel,
      delta,
      backlogs: this.#newBacklogs(),
      sent: metrics.sent(transport, 'push_publication', this.#namespace),
      conflated: (publications) => metrics.conflated(this.#namespace, publications)
    })
  }

  #newBacklogs(): GroupBacklogs | null {
    return this.#conflator === null ? null : new GroupBacklogs(this.#conflator)
  }
}

/** Null without a filter. */
const filterKeyOf = ({ filter, outbox: { transport } }: Pick<Subscription, 'filter' | 'outbox'>): string | null =>
  filter === null ? null : `${transport.framing.name} ${filter.text}`

const rateKey = (rate: Rate, filter: TagFilter | null): string => `${rate} ${filter?.text ?? ''}`

/** For subscribers that keep their rate after a reload has removed `conflate`. */
const UNMERGED: Conflator = { read: () => null }
