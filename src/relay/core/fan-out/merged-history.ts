import type { Codec, SentPublication } from '../codec/codec.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import { listText, replaces } from '../merging/conflation.js'
import type { Conflator, KeyedList } from '../merging/keyed-list.js'
import type { Place } from '../merging/place.js'
import type { Position, Publication } from '../publication.js'
import { filterInSlices, joinInSlices, SHORT_SLICE_MS, TimeSlice } from '../time-slice.js'
import { MAX_VIEWS } from './channel-views.js'
import type { EntryPlaces, SnapshotEntry } from './entry-places.js'
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
  readonly #viewSnapshots = new Map<string, MaybePromise<Snapshot | null>>()
  /** The places that these snapshots were selected by. */
  #places: EntryPlaces | null = null

  constructor(conflator: Conflator, epoch: string) {
    this.#conflator = conflator
    this.epoch = epoch
  }

  /** The history up to this offset is merged. */
  get offset(): number {
    return this.#offset
  }

  get size(): number {
    return this.#newest.size
  }

  /** The newest entry of a key; undefined if the history has none. */
  find(key: string): SnapshotEntry | undefined {
    return this.#newest.get(key)
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
  viewSnapshot(
    { view, places }: SnapshotView,
    deliveredOffset: number,
    monotonicMs: () => number
  ): MaybePromise<Snapshot | null> {
    if (places !== this.#places || this.#viewSnapshots.size >= MAX_VIEWS) this.forgetViews()
    this.#places = places
    const known = this.#viewSnapshots.get(view.text)
    if (known !== undefined) return known
    const envelope = this.#envelope
    // A copy, because publications may be added meanwhile.
    const newest = [...this.#newest.values()]
    const slice = new TimeSlice(monotonicMs, SHORT_SLICE_MS)
    const isInside = (entry: Candidate): boolean => places.isInside(entry, view, deliveredOffset)
    const snapshot = after(filterInSlices(newest, isInside, slice), (inside) =>
      envelope === null || inside.length === 0 ? null : snapshotOf(envelope, inside, slice)
    )
    this.#viewSnapshots.set(view.text, snapshot)
    return snapshot
  }
}

/** More entries are joined in slices. */
const MAX_JOINED_AT_ONCE = 1000

const snapshotOf = (
  { publication, list }: Envelope,
  entries: readonly Candidate[],
  slice: TimeSlice
): MaybePromise<Snapshot> => {
  if (entries.length <= MAX_JOINED_AT_ONCE) return new Snapshot(publication, listText(list, entries))
  return joinInSlices(entries, ({ text }) => text, slice).then(
    (text) => new Snapshot(publication, listText(list, [{ text: text ?? '' }]))
  )
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
