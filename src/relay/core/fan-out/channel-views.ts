import type { Publication } from '../engine.js'
import type { Conflator } from '../merging/keyed-list.js'
import { EntryPlaces } from './entry-places.js'
import type { PlacedPublication, View } from './view.js'

/** Different views of one channel. Every publication is compared with each. Further subscribers receive everything. */
export const MAX_VIEWS = 256

/** The views of a channel, and what they are compared with. */
export class ChannelViews {
  /** Number of subscriptions by the text of their view. */
  readonly #subscriptions = new Map<string, number>()
  /** Null without entries. */
  #places: EntryPlaces | null

  constructor(conflator: Conflator | null) {
    this.#places = conflator === null ? null : new EntryPlaces(conflator)
  }

  get places(): EntryPlaces | null {
    return this.#places
  }

  /** Changed rules: all subscribers with a view start again. */
  configure(conflator: Conflator | null): void {
    this.#places = conflator === null ? null : new EntryPlaces(conflator)
  }

  /** False if the channel has too many other views. */
  open({ text }: View): boolean {
    const known = this.#subscriptions.get(text) ?? 0
    if (known === 0 && this.#subscriptions.size >= MAX_VIEWS) return false
    this.#subscriptions.set(text, known + 1)
    return true
  }

  close({ text }: View): void {
    const known = this.#subscriptions.get(text) ?? 0
    if (known > 1) this.#subscriptions.set(text, known - 1)
    else this.#subscriptions.delete(text)
  }

  place(publication: Publication): PlacedPublication {
    return this.#places?.place(publication) ?? publication
  }
}
