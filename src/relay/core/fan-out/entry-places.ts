import { listText, replaces } from '../merging/conflation.js'
import { type Conflator, copyText, type Entry, type KeyedList } from '../merging/keyed-list.js'
import type { Place } from '../merging/place.js'
import type { Publication } from '../publication.js'
import { EVERYWHERE, type Placed, type PlacedPublication, type View, withoutPosition } from './view.js'

/** The newest entry of a key. */
interface Known {
  x: number
  y: number
  time: number
}

/** A publication of the configured shape, and where its entries were and are. */
class PlacedList implements Placed {
  /** Offset in the stream. */
  readonly offset: number
  readonly #publication: Publication
  readonly #list: KeyedList
  /**
   * Four coordinates of each entry: from and to. Until they are set, the entry goes to every view. All are NaN if the entry is
   * older than the known one.
   */
  readonly moves: Float64Array

  constructor(publication: Publication, list: KeyedList) {
    this.offset = publication.offset
    this.#publication = withoutPosition(publication)
    this.#list = list
    this.moves = new Float64Array(4 * list.entries.length).fill(EVERYWHERE)
  }

  get entries(): readonly Entry[] {
    return this.#list.entries
  }

  /** Views that receive all entries share one object. */
  partFor(view: View): Publication | null {
    const { moves } = this
    const { entries } = this.#list
    const received = entries.filter((_, index) => {
      const from = 4 * index
      return (
        view.contains(moves[from] ?? Number.NaN, moves[from + 1] ?? Number.NaN) ||
        view.contains(moves[from + 2] ?? Number.NaN, moves[from + 3] ?? Number.NaN)
      )
    })
    if (received.length === 0) return null
    if (received.length === entries.length) return this.#publication
    return { ...this.#publication, data: listText(this.#list, received) }
  }
}

/** A publication of another shape goes to all views. */
class Unplaced implements Placed {
  readonly #publication: Publication

  constructor(publication: Publication) {
    this.#publication = withoutPosition(publication)
  }

  partFor(): Publication {
    return this.#publication
  }
}

/** An entry of a snapshot. */
export interface SnapshotEntry extends Pick<Entry, 'key' | 'time' | 'place'> {
  /** Offset of its publication. */
  readonly offset: number
}

/** Finds the newest entry of a key in the merged history. */
export type StoredEntries = (key: string) => SnapshotEntry | undefined

/** Approximate size of a place without its key. */
const PLACE_BYTES = 200
/** About 80,000 keys with short names. Up to two generations are stored. */
const GENERATION_BYTES = 16 * 1024 * 1024

/** Publications that wait until the history is merged. It usually takes a few milliseconds. */
const MAX_WAITING = 1000

/**
 * The last places of the keys that were delivered or are in the snapshot of a view, from which follows which views an entry
 * leaves. A subscriber with a view relies on it: every key that the subscriber has is either here, or `#hasForgotten` is set.
 * Other keys are looked up in the merged history. Not a `BoundedMap`, because it must know when keys are evicted, and because
 * the names of keys differ in length.
 */
export class EntryPlaces {
  readonly #conflator: Conflator
  readonly #stored: StoredEntries
  /** Keys that were used since the last generation ended, and those of the generation before. */
  #recent = new Map<string, Known>()
  #earlier = new Map<string, Known>()
  #recentBytes = 0
  /** Publications that were delivered before the history was merged, in order; null afterwards. */
  #waiting: PlacedList[] | null = []
  /** A key that is not here may be in the view of any subscriber. Otherwise it is new. */
  #hasForgotten = false

  constructor(conflator: Conflator, stored: StoredEntries) {
    this.#conflator = conflator
    this.#stored = stored
  }

  /** Deliveries were lost, and all subscribers with a view start again. */
  clear(): void {
    this.#recent.clear()
    this.#earlier.clear()
    this.#recentBytes = 0
    this.#waiting = []
    this.#hasForgotten = true
  }

  /** Records the places in a delivered publication. */
  place(publication: Publication): PlacedPublication {
    const { data } = publication
    const list = typeof data === 'string' ? this.#conflator.read(data) : null
    if (list === null) return { ...publication, placed: new Unplaced(publication) }
    const placed = new PlacedList(publication, list)
    if (this.#waiting === null) this.#move(placed)
    else if (this.#waiting.push(placed) > MAX_WAITING) {
      this.#hasForgotten = true
      this.start(0)
    }
    return { ...publication, placed }
  }

  /** The merged history has the publications up to this offset. */
  start(mergedOffset: number): void {
    const waiting = this.#waiting ?? []
    this.#waiting = null
    for (const placed of waiting) if (placed.offset === 0 || placed.offset > mergedOffset) this.#move(placed)
  }

  #move({ entries, moves }: PlacedList): void {
    for (const [index, entry] of entries.entries()) this.#moveEntry(entry, moves, 4 * index)
  }

  #moveEntry({ key, time, place }: Entry, moves: Float64Array, index: number): void {
    const known = this.#find(key)
    const stored = known === undefined ? this.#stored(key) : undefined
    const last = known ?? stored
    if (last !== undefined && !replaces({ time }, last)) {
      moves.fill(Number.NaN, index, index + 4)
      return
    }
    const isForgotten = known === undefined && this.#hasForgotten
    const newest = known ?? this.#add(key, time, stored === undefined ? place : stored.place)
    moves[index] = isForgotten ? EVERYWHERE : newest.x
    moves[index + 1] = newest.y
    newest.time = time
    if (place !== null) {
      newest.x = place.x
      newest.y = place.y
    }
    moves[index + 2] = newest.x
    moves[index + 3] = newest.y
  }

  /**
   * Whether an entry of a snapshot is in the view. Its place is recorded then, because subscribers receive it. A snapshot can be
   * ahead of what was delivered. Up to that, its entries are not newer than the last places, unless keys were forgotten.
   */
  isInside({ key, time, place, offset }: SnapshotEntry, view: View, deliveredOffset: number): boolean {
    if (place !== null && !view.contains(place.x, place.y)) return false
    const known = this.#find(key) ?? this.#add(key, time, place)
    if (time > known.time && offset <= deliveredOffset) {
      known.time = time
      // Any view may still have the older entry.
      known.x = EVERYWHERE
      known.y = EVERYWHERE
    }
    if (!replaces({ time }, known)) return false
    return (place !== null && offset > deliveredOffset) || view.contains(known.x, known.y)
  }

  #find(key: string): Known | undefined {
    const recent = this.#recent.get(key)
    if (recent !== undefined) return recent
    const earlier = this.#earlier.get(key)
    if (earlier !== undefined) this.#set(key, earlier)
    return earlier
  }

  /** An entry without coordinates belongs to every view. */
  #add(key: string, time: number, place: Place | null): Known {
    const known = { x: place?.x ?? EVERYWHERE, y: place?.y ?? EVERYWHERE, time }
    this.#set(key, known)
    return known
  }

  #set(key: string, known: Known): void {
    // Copied, because a part of a text keeps the whole text in memory.
    this.#recent.set(copyText(key), known)
    this.#recentBytes += PLACE_BYTES + key.length
    if (this.#recentBytes < GENERATION_BYTES) return
    if (this.#earlier.size > 0) this.#hasForgotten = true
    this.#earlier = this.#recent
    this.#recent = new Map()
    this.#recentBytes = 0
  }
}
