import type { History } from '../engine.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import type { Conflator } from '../merging/keyed-list.js'
import type { ChannelOptions } from '../options.js'
import type { Position, Publication } from '../publication.js'
import { ChannelSnapshot, filteredSnapshot, type PositionedSnapshot, type ReadHistory } from './channel-snapshot.js'
import type { ClosedSnapshots } from './closed-snapshots.js'
import type { EntryPlaces, SnapshotEntry } from './entry-places.js'
import type { Subscription } from './subscription.js'
import type { ViewPace } from './view-pace.js'

export interface SnapshotDependencies {
  readonly monotonicMs: () => number
  readonly closedSnapshots: ClosedSnapshots
  readonly viewPace: ViewPace
}

/** Where new subscribers of a channel get their snapshots from. */
export class SnapshotSource {
  readonly #channel: string
  readonly #dependencies: SnapshotDependencies
  #options: ChannelOptions
  #conflator: Conflator | null
  /** Null if the namespace has no snapshots. */
  #snapshot: ChannelSnapshot | null

  constructor(
    channel: string,
    options: ChannelOptions,
    conflator: Conflator | null,
    dependencies: SnapshotDependencies
  ) {
    this.#channel = channel
    this.#dependencies = dependencies
    this.#options = options
    this.#conflator = conflator
    this.#snapshot = dependencies.closedSnapshots.take(channel, options) ?? this.#newSnapshot()
  }

  configure(options: ChannelOptions, conflator: Conflator | null): void {
    const isSame = conflator === this.#conflator && options.snapshot === this.#options.snapshot
    this.#options = options
    this.#conflator = conflator
    if (!isSame) this.#snapshot = this.#newSnapshot()
  }

  #newSnapshot(): ChannelSnapshot | null {
    return this.#options.snapshot && this.#conflator !== null
      ? new ChannelSnapshot(this.#conflator, this.#dependencies.monotonicMs)
      : null
  }

  /**
   * The newest entry of every key in the history, and its position; null if the namespace has no snapshots. `delivered` returns
   * the position up to which the channel has delivered. `places` are those of a channel with views.
   */
  read(
    history: History,
    { filter, view, subscriber }: Subscription,
    places: EntryPlaces | null,
    delivered: () => Position | null
  ): MaybePromise<PositionedSnapshot> | null {
    const snapshot = this.#snapshot
    if (snapshot === null || this.#conflator === null) return null
    const read: ReadHistory = (since) =>
      history.read(this.#channel, { since, limit: -1, reverse: false }, this.#options)
    const { monotonicMs, viewPace } = this.#dependencies
    if (filter !== null) return filteredSnapshot(this.#conflator, filter, read, monotonicMs)
    if (view === null || places === null) return snapshot.read(read, delivered, null)
    return after(viewPace.turnOf(subscriber), () =>
      after(snapshot.read(read, delivered, { view, places }), (found) => {
        viewPace.spend(subscriber, snapshot.size)
        return found
      })
    )
  }

  /** The newest entry of a key in the merged history. */
  find(key: string): SnapshotEntry | undefined {
    return this.#snapshot?.find(key)
  }

  deliver(publication: Publication, epoch: string): void {
    this.#snapshot?.deliver(publication, epoch, this.#options.historySize)
  }

  /** The stream has lost publications. */
  clear(): void {
    this.#snapshot?.clear()
  }

  /** The channel is closed. It may be opened again soon. */
  close(): void {
    if (this.#snapshot !== null) this.#dependencies.closedSnapshots.keep(this.#channel, this.#options, this.#snapshot)
  }
}
