import type { PositionEntry } from '../../../schemas/realtime.js'
import { type CurrentView, grantedView, isInView, type View, viewData, viewToAsk, WHOLE } from '../realtime/view.js'
import type { LivePosition, PositionStore } from './position-store.js'

interface FloorView {
  wanted: View
  current: CurrentView
  /** The last granted part, also while another one is pending. */
  received: View | null
}

/** The parts of floors that the application shows. The relay sends the positions inside, and each that leaves once more. */
export class FloorViews {
  readonly #store: PositionStore
  readonly #views = new Map<string, FloorView>()

  constructor(store: PositionStore) {
    this.#store = store
  }

  /** The data of a new subscription; undefined for the whole floor. */
  dataOf(floorId: string): { readonly view: View } | undefined {
    const view = this.#views.get(floorId)
    if (view === undefined) return undefined
    view.current = { asked: viewToAsk(view.wanted, WHOLE) ?? null, granted: null }
    return viewData(view.current.asked)
  }

  /** Whether the floor has to be subscribed to again. Null for the whole floor. */
  want(floorId: string, wanted: View | null): boolean {
    const known = this.#views.get(floorId)
    if (wanted === null) return this.#views.delete(floorId)
    if (known === undefined) this.#views.set(floorId, { wanted, current: WHOLE, received: null })
    else known.wanted = wanted
    return viewToAsk(wanted, known?.current ?? WHOLE) !== undefined
  }

  /** Whether the part that was granted is not the one that is wanted any more. */
  subscribed(floorId: string, data: unknown): boolean {
    const view = this.#views.get(floorId)
    if (view === undefined) return false
    view.received = grantedView(data)
    view.current = { ...view.current, granted: view.received }
    const isOutdated = viewToAsk(view.wanted, view.current) !== undefined
    // The shown positions stay until those of the wanted part arrive.
    if (view.received !== null && !isOutdated) this.#forgetUnlessRepeated(floorId)
    return isOutdated
  }

  /** The part of the floor that is received; null for all of it. */
  granted(floorId: string): View | null {
    return this.#views.get(floorId)?.received ?? null
  }

  /** Removes the positions that have left the view. Returns the others. */
  received(floorId: string, entries: PositionEntry[]): PositionEntry[] {
    const granted = this.granted(floorId)
    if (granted === null) return entries
    const left = entries.filter(({ position }) => !isInView(position, granted))
    this.#store.forget(left.map(({ transmitterId }) => String(transmitterId)))
    return left.length === 0 ? entries : entries.filter((entry) => !left.includes(entry))
  }

  forget(floorId: string): void {
    this.#views.delete(floorId)
  }

  /**
   * The reply contains every position inside. The official client emits it right after this event, so what has not arrived
   * by then has left while the view was changed.
   */
  #forgetUnlessRepeated(floorId: string): void {
    const before = this.#store.onFloor(floorId)
    queueMicrotask(() => {
      const idOf = ({ entry }: LivePosition): string => String(entry.transmitterId)
      this.#store.forget(before.filter((position) => this.#store.get(idOf(position)) === position).map(idOf))
    })
  }
}
