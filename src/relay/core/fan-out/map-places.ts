import { PlaceReader } from '../merging/place.js'
import type { ViewOptions } from '../options.js'
import type { Payload, Publication } from '../publication.js'
import { removalBy } from './tag-filter.js'
import { type Placed, type PlacedPublication, type View, withoutPosition } from './view.js'

/** The places of the entries of a map. Changes contain the replaced entry, so nothing is stored. */
export class MapPlaces {
  readonly #reader: PlaceReader

  constructor(options: ViewOptions) {
    this.#reader = new PlaceReader(options)
  }

  place(publication: Publication): PlacedPublication {
    return { ...publication, placed: new PlacedEntry(publication, this) }
  }

  /** Tests which views an entry is in. Without coordinates it is in all. */
  test(data: Payload): (view: View) => boolean {
    const place = this.#reader.read(data)
    return place === null ? () => true : (view) => view.contains(place.x, place.y)
  }
}

/** A change of an entry. */
class PlacedEntry implements Placed {
  readonly #change: Publication
  /** For views that the entry leaves. */
  readonly #removal: Publication
  readonly #isInside: (view: View) => boolean
  readonly #wasInside: (view: View) => boolean

  constructor(publication: Publication, places: MapPlaces) {
    const { data, removed, previous } = publication
    this.#change = withoutPosition(publication)
    this.#removal = removed ? this.#change : removalBy(this.#change)
    this.#isInside = removed ? () => false : places.test(data)
    // Without the replaced entry, a written one is new, and a removed one may be in any view.
    this.#wasInside = previous === undefined ? () => removed === true : places.test(previous.data)
  }

  partFor(view: View): Publication | null {
    if (this.#isInside(view)) return this.#change
    return this.#wasInside(view) ? this.#removal : null
  }
}
