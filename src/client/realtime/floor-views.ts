import type { PositionEntry } from '../../../schemas/realtime.js'
import type { LivePosition, PositionStore } from './position-store.js'
import { type CurrentView, grantedView, isInView, type View, viewData, viewToAsk, WHOLE } from './view.js'

interface FloorView {
  wanted: View
  current: CurrentView
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
    if (known === undefined) this.#views.set(floorId, { wanted, current: WHOLE })
    else known.wanted = wanted
    return viewToAsk(wanted, known?.current ?? WHOLE) !== undefined
  }

  /** Whether the part that was granted is not the one that is wanted any more. */
  subscribed(floorId: string, data: unknown): boolean {
    const view = this.#views.get(floorId)
    if (view === undefined) return false
    view.current = { ...view.current, granted: grantedView(data) }
    if (view.current.granted !== null) this.#forgetUnlessRepeated(floorId)
    return viewToAsk(view.wanted, view.current) !== undefined
  }

  /** The part of the floor that is received; null for all of it. */
  granted(floorId: string): View | null {
    return this.#views.get(floorId)?.current.granted ?? null
  }

  /** Removes the positions that have left the view. */
  received(floorId: string, entries: readonly PositionEntry[]): void {
    const granted = this.granted(floorId)
    if (granted === null) return
    const left = entries.filter(({ position }) => !isInView(position, granted))
    this.#store.forget(left.map(({ transmitterId }) => String(transmitterId)))
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
