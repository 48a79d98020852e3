import type { RetainedPage } from '../engine.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import type { Conflator } from '../merging/keyed-list.js'
import type { Position, Publication } from '../publication.js'
import { SHORT_SLICE_MS, TimeSlice } from '../time-slice.js'
import type { SnapshotEntry } from './entry-places.js'
import { MergedHistory, type Snapshot, type SnapshotView } from './merged-history.js'
import { passes, type TagFilter } from './tag-filter.js'

/** A snapshot and the position that it belongs to. */
export interface PositionedSnapshot {
  readonly position: Position
  /** Null if no publication has the configured shape. */
  readonly snapshot: Snapshot | null
}

/** Reads the publications after a position; all of them for null. */
export type ReadHistory = (since: Position | null) => MaybePromise<RetainedPage>

/** Deliveries that arrive while the history is read usually need no second read. */
const MAX_READS = 3

/**
 * The merged history of a channel. It is merged for the first subscriber; a later one adds what was published since, because
 * merging each delivery would cost as much as sending it to ten subscribers. Each subscriber reads the end of the stream
 * anyway, and with it the offset of the oldest retained publication. Older publications are dropped then: they have expired,
 * or a node has removed them.
 */
export class ChannelSnapshot {
  readonly #conflator: Conflator
  readonly #monotonicMs: () => number
  #merged: MergedHistory | null = null
  /** The first merge, shared by all subscribers that wait for it. */
  #loading: Promise<MergedHistory> | null = null

  constructor(conflator: Conflator, monotonicMs: () => number) {
    this.#conflator = conflator
    this.#monotonicMs = monotonicMs
  }

  /** Number of keys in memory. */
  get size(): number {
    return this.#merged?.size ?? 0
  }

  /** The newest merged entry of a key. */
  find(key: string): SnapshotEntry | undefined {
    return this.#merged?.find(key)
  }

  /** A publication was delivered. The merged history is forgotten when all of it has left the history. */
  deliver({ offset }: Publication, epoch: string, historySize: number): void {
    const merged = this.#merged
    if (offset === 0) merged?.forgetViews()
    else if (merged !== null && (epoch !== merged.epoch || offset - merged.offset >= historySize)) this.#merged = null
  }

  /** Called when the stream has lost publications. */
  clear(): void {
    this.#merged = null
  }

  /**
   * Brings the merged history up to date. `delivered` returns the position up to which the channel has delivered: the
   * snapshot contains all of it, because the subscriber may not have received it otherwise. With a view, the snapshot has only
   * the entries in it.
   */
  read(
    readHistory: ReadHistory,
    delivered: () => Position | null,
    view: SnapshotView | null
  ): MaybePromise<PositionedSnapshot> {
    return this.#read(readHistory, delivered, view, MAX_READS - 1)
  }

  #read(
    readHistory: ReadHistory,
    delivered: () => Position | null,
    view: SnapshotView | null,
    readsLeft: number
  ): MaybePromise<PositionedSnapshot> {
    return after(this.#update(readHistory), (merged) => {
      const reached = delivered()
      const isBehind = reached !== null && reached.epoch === merged.epoch && reached.offset > merged.offset
      if (isBehind && readsLeft > 0) return this.#read(readHistory, delivered, view, readsLeft - 1)
      const position = { epoch: merged.epoch, offset: merged.offset }
      if (view === null) return { position, snapshot: merged.snapshot() }
      const reachedOffset = reached?.epoch === merged.epoch ? reached.offset : 0
      view.places.start(merged.offset)
      return after(merged.viewSnapshot(view, reachedOffset, this.#monotonicMs), (snapshot) => ({ position, snapshot }))
    })
  }

  #update(readHistory: ReadHistory): MaybePromise<MergedHistory> {
    const known = this.#merged
    if (known === null) return this.#loadOnce(readHistory)
    // While the history is read, a delivery may begin another stream.
    return after(readHistory({ epoch: known.epoch, offset: known.offset }), (page) =>
      page.epoch === known.epoch && this.#merged === known
        ? extend(known, page, this.#monotonicMs)
        : this.#loadOnce(readHistory)
    )
  }

  #loadOnce(readHistory: ReadHistory): Promise<MergedHistory> {
    this.#loading ??= this.#load(readHistory).finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  async #load(readHistory: ReadHistory): Promise<MergedHistory> {
    const merged = await mergePage(this.#conflator, await readHistory(null), this.#monotonicMs)
    this.#merged = merged
    return merged
  }
}

const extend = (
  merged: MergedHistory,
  { publications, offset, oldest }: RetainedPage,
  monotonicMs: () => number
): MaybePromise<MergedHistory> =>
  after(publications.length === 0 ? undefined : addAll(merged, publications, monotonicMs), () => {
    merged.advanceTo(offset)
    merged.dropBefore(oldest)
    return merged
  })

/** In time slices, because a history can have any size. Several subscribers may do this at the same time. */
const addAll = async (
  merged: MergedHistory,
  publications: readonly Publication[],
  monotonicMs: () => number
): Promise<void> => {
  const slice = new TimeSlice(monotonicMs, SHORT_SLICE_MS)
  for (const publication of publications) {
    if (publication.offset <= merged.offset) continue
    merged.add(publication)
    if (slice.isOver) await slice.next()
  }
}

const mergePage = (conflator: Conflator, page: RetainedPage, monotonicMs: () => number): MaybePromise<MergedHistory> =>
  extend(new MergedHistory(conflator, page.epoch), page, monotonicMs)

/** The snapshot for one subscriber with a tag filter: the matching publications of the history, merged. */
export const filteredSnapshot = async (
  conflator: Conflator,
  filter: TagFilter,
  readHistory: ReadHistory,
  monotonicMs: () => number
): Promise<PositionedSnapshot> => {
  const page = await readHistory(null)
  const publications = page.publications.filter((publication) => passes(filter, publication))
  const merged = await mergePage(conflator, { ...page, publications }, monotonicMs)
  return { position: { epoch: page.epoch, offset: page.offset }, snapshot: merged.snapshot() }
}
