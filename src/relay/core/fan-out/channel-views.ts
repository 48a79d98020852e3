import type { Conflator } from '../merging/keyed-list.js'
import type { ChannelOptions } from '../options.js'
import type { Publication } from '../publication.js'
import { EntryPlaces, type StoredEntries } from './entry-places.js'
import { MapPlaces } from './map-places.js'
import { EVERYTHING, type PlacedPublication, type View } from './view.js'

/** Different views of one channel. Every publication is compared with each. Further subscribers receive everything. */
export const MAX_VIEWS = 256

/** How many subscribers receive a part of the channel. */
export interface ViewCounts {
  readonly subscribers: number
  /** Number of different views. */
  readonly different: number
  /** Subscribers that asked for a view which was too large, or one too many, and receive everything. */
  readonly unlimited: number
}

/** The views of a channel, and what they are compared with. A channel has it as long as it has a subscription with a view. */
export class ChannelViews {
  /** Number of subscriptions by the text of their view. */
  readonly #subscriptions = new Map<string, number>()
  readonly #stored: StoredEntries
  #conflator: Conflator | null
  /** Null before the first subscription, and without a conflator. */
  #places: EntryPlaces | null = null
  /** Null if the channel is not a map. */
  #map: MapPlaces | null = null

  constructor(conflator: Conflator | null, options: ChannelOptions, stored: StoredEntries) {
    this.#stored = stored
    this.#conflator = conflator
    this.configure(conflator, options)
  }

  get map(): MapPlaces | null {
    return this.#map
  }

  /** The last places of the entries of a stream. */
  get places(): EntryPlaces | null {
    return this.#places
  }

  /** Changed rules: all subscribers with a view start again. */
  configure(conflator: Conflator | null, { map, view }: ChannelOptions): void {
    this.#conflator = conflator
    this.#places = null
    this.#map = map === null || view === null ? null : new MapPlaces(view)
  }

  get counts(): ViewCounts {
    const unlimited = this.#subscriptions.get(EVERYTHING.text) ?? 0
    let subscribers = -unlimited
    for (const count of this.#subscriptions.values()) subscribers += count
    return { subscribers, different: this.#subscriptions.size - (unlimited > 0 ? 1 : 0), unlimited }
  }

  /** Counts a subscription. Returns its view, or `EVERYTHING` if the channel has too many others. */
  open(view: View): View {
    const limit = this.#subscriptions.has(EVERYTHING.text) ? MAX_VIEWS + 1 : MAX_VIEWS
    const isGranted = this.#subscriptions.has(view.text) || this.#subscriptions.size < limit
    const opened = isGranted ? view : EVERYTHING
    this.#subscriptions.set(opened.text, (this.#subscriptions.get(opened.text) ?? 0) + 1)
    if (this.#conflator !== null) this.#places ??= new EntryPlaces(this.#conflator, this.#stored)
    return opened
  }

  close({ text }: View): void {
    const known = this.#subscriptions.get(text) ?? 0
    if (known > 1) this.#subscriptions.set(text, known - 1)
    else this.#subscriptions.delete(text)
  }

  get isEmpty(): boolean {
    return this.#subscriptions.size === 0
  }

  place(publication: Publication): PlacedPublication {
    return (this.#map ?? this.#places)?.place(publication) ?? publication
  }
}
