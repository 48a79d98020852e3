import type { Codec, SentPublication } from '../codec/codec.js'
import type { RetainedPage } from '../engine.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import { listText, replaces } from '../merging/conflation.js'
import type { Conflator, KeyedList } from '../merging/keyed-list.js'
import type { Place } from '../merging/place.js'
import type { Position, Publication } from '../publication.js'
import { TimeSlice } from '../time-slice.js'
import { MAX_VIEWS } from './channel-views.js'
import type { EntryPlaces } from './entry-places.js'
import { passes, type TagFilter } from './tag-filter.js'
import type { View } from './view.js'

/** An entry of a retained publication that is the newest of its key, or will be when those before it have left the history. */
interface Candidate {
  readonly key: string
  readonly text: string
  readonly time: number
  readonly place: Place | null
  /** Offset of its publication. */
  readonly offset: number
  /** Ascending in the order in which entries were added. */
  readonly sequence: number
  /** A later entry of the key with an earlier time. */
  next: Candidate | null
}

/** The newest publication of a merged history that has the configured shape. */
interface Envelope {
  readonly publication: Publication
  readonly list: KeyedList
}

/** The publications of a history, merged by key. Publications are added at the end and leave at the beginning. */
export class MergedHistory {
  readonly epoch: string
  readonly #conflator: Conflator
  /** The newest entry of each key, ordered by their sequence. */
  #newest = new Map<string, Candidate>()
  #envelope: Envelope | null = null
  #offset = 0
  #oldest = 0
  #sequence = 0
  /** Null after a change. */
  #snapshot: Snapshot | null = null
  /** Of views, by their text. Cleared after a change. */
  readonly #viewSnapshots = new Map<string, Snapshot | null>()

  constructor(conflator: Conflator, epoch: string) {
    this.#conflator = conflator
    this.epoch = epoch
  }

  /** The history up to this offset is merged. */
  get offset(): number {
    return this.#offset
  }

  /** The history continues after this offset; publications up to it were added or have left. */
  advanceTo(offset: number): void {
    this.#offset = Math.max(this.#offset, offset)
  }

  add(publication: Publication): void {
    const { data, offset } = publication
    this.advanceTo(offset)
    const list = typeof data === 'string' ? this.#conflator.read(data) : null
    if (list === null) return
    this.#changed()
    this.#envelope = { publication, list }
    for (const { key, text, time, place } of list.entries) {
      // Without coordinates an entry stays where its key was.
      const kept = place ?? this.#newest.get(key)?.place ?? null
      this.#addEntry({ key, text, time, place: kept, offset, sequence: ++this.#sequence, next: null })
    }
  }

  #changed(): void {
    this.#snapshot = null
    this.forgetViews()
  }

  /** Entries have moved without a publication in the history. */
  forgetViews(): void {
    this.#viewSnapshots.clear()
  }

  #addEntry(entry: Candidate): void {
    const head = this.#newest.get(entry.key)
    if (head === undefined || replaces(entry, head)) {
      // Deleted first, so that the key moves to the end.
      if (head !== undefined) this.#newest.delete(entry.key)
      this.#newest.set(entry.key, entry)
      return
    }
    // Times decrease along the chain, so everything after the first entry that is replaced is replaced too.
    let last = head
    while (last.next !== null && !replaces(entry, last.next)) last = last.next
    last.next = entry
  }

  /** Removes the publications before this offset, which have left the history. */
  dropBefore(oldest: number): void {
    if (oldest <= this.#oldest) return
    this.#oldest = oldest
    if (this.#envelope !== null && this.#envelope.publication.offset < oldest) this.#envelope = null
    const successors: Candidate[] = []
    for (const [key, head] of this.#newest) {
      if (head.offset >= oldest) break
      this.#changed()
      this.#newest.delete(key)
      let successor = head.next
      while (successor !== null && successor.offset < oldest) successor = successor.next
      if (successor !== null) successors.push(successor)
    }
    if (successors.length > 0) this.#insert(successors)
  }

  #insert(entries: readonly Candidate[]): void {
    const all = [...this.#newest.values(), ...entries].sort((one, other) => one.sequence - other.sequence)
    this.#newest = new Map(all.map((entry) => [entry.key, entry]))
  }

  /** Null if no publication has the configured shape. */
  snapshot(): Snapshot | null {
    if (this.#envelope === null) return null
    const { publication, list } = this.#envelope
    this.#snapshot ??= new Snapshot(publication, listText(list, this.#newest.values()))
    return this.#snapshot
  }

  /** The entries in a view; null for none. `deliveredOffset`: the channel has delivered the publications up to here. */
  viewSnapshot({ view, places }: SnapshotView, deliveredOffset: number): Snapshot | null {
    const known = this.#viewSnapshots.get(view.text)
    if (known !== undefined) return known
    const newest = [...this.#newest.values()]
    places.recordSnapshot(newest, this.#offset, deliveredOffset)
    const inside = newest.filter((entry) => places.isInside(entry, view, deliveredOffset))
    const snapshot =
      this.#envelope === null || inside.length === 0
        ? null
        : new Snapshot(this.#envelope.publication, listText(this.#envelope.list, inside))
    if (this.#viewSnapshots.size >= MAX_VIEWS) this.forgetViews()
    this.#viewSnapshots.set(view.text, snapshot)
    return snapshot
  }
}

/** A view, and the places of the entries that it selects from. */
export interface SnapshotView {
  readonly view: View
  readonly places: EntryPlaces
}

/** A publication with the newest entry of every key in the history. Subscribers share what they receive: it is encoded once. */
export class Snapshot {
  readonly #newest: Publication
  readonly #text: string
  readonly #lists = new Map<string, readonly SentPublication[]>()

  constructor(newest: Publication, text: string) {
    this.#newest = newest
    this.#text = text
  }

  /** The list of publications for a reply. `offset` is the client's position, 0 for a client without one. */
  toSend(codec: Codec, takesDelta: boolean, { epoch, offset }: Position): readonly SentPublication[] {
    const key = `${codec.name} ${takesDelta} ${offset > 0}`
    const known = this.#lists.get(key)
    if (known?.[0]?.publication.offset === offset) return known
    const { info, tags, time, version } = this.#newest
    const publication: Publication = { data: this.#text, offset, info, tags, time, delta: false, version }
    const data = takesDelta ? codec.deltaData(this.#text) : this.#text
    const list = [{ publication, epoch, data, isDelta: false }]
    this.#lists.set(key, list)
    return list
  }
}

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
      const reachedOffset = reached?.epoch === merged.epoch ? reached.offset : 0
      const snapshot = view === null ? merged.snapshot() : merged.viewSnapshot(view, reachedOffset)
      return { position: { epoch: merged.epoch, offset: merged.offset }, snapshot }
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
  const slice = new TimeSlice(monotonicMs)
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
