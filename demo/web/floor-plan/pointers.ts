import { distance, type Point } from './plan.js'
import { type Bounds, panBy, pinch, type View } from './viewport.js'

/** A pointer that moves less is a click, in pixels. */
const CLICK_REACH = 4

/** The mouse button or the fingers on the plan: one pointer pans, two zoom and pan. Further ones are ignored. */
export class Pointers {
  readonly #positions = new Map<number, Point>()
  #start: Point = { x: 0, y: 0 }
  #isGesture = false

  /** Whether the pointers have moved the plan since the first one went down, so that the release is not a click. */
  get isGesture(): boolean {
    return this.#isGesture
  }

  down(id: number, at: Point): void {
    if (this.#positions.size === 0) {
      this.#start = at
      this.#isGesture = false
    } else {
      this.#isGesture = true
    }
    this.#positions.set(id, at)
  }

  /** The view after a pointer has moved; the same object if it does not change. */
  move(id: number, at: Point, view: View, bounds: Bounds): View {
    const from = this.#positions.get(id)
    if (from === undefined) return view
    this.#isGesture ||= distance(this.#start, at) > CLICK_REACH
    if (!this.#isGesture) return view
    this.#positions.set(id, at)
    if (this.#positions.size === 1) return panBy(view, { x: at.x - from.x, y: at.y - from.y }, bounds)
    const [first, second] = this.#positions.keys()
    const other = this.#positions.get(id === first ? (second ?? id) : (first ?? id))
    return other && (id === first || id === second) ? pinch(view, [from, other], [at, other], bounds) : view
  }

  up(id: number): void {
    this.#positions.delete(id)
  }
}

/** The zoom factor of a wheel event. Trackpads report a pinch as a wheel with the control key, in small steps. */
export const wheelFactor = ({ deltaY, deltaMode, ctrlKey }: WheelTurn): number => {
  const pixels = deltaY * (PIXELS_OF_UNIT[deltaMode] ?? 1)
  const limited = Math.min(Math.max(pixels, -MAX_WHEEL_PIXELS), MAX_WHEEL_PIXELS)
  return 2 ** (-limited / (ctrlKey ? 50 : 300))
}

interface WheelTurn {
  readonly deltaY: number
  /** Pixels, lines or pages. */
  readonly deltaMode: number
  readonly ctrlKey: boolean
}

const PIXELS_OF_UNIT = [1, 25, 500]
const MAX_WHEEL_PIXELS = 300

type KeyAction = { readonly pan: Point } | { readonly zoom: 1 | -1 } | 'fit' | 'follow'

const PAN = 80

/** Keys of the focused plan. */
export const KEY_ACTIONS: Readonly<Record<string, KeyAction>> = {
  ArrowLeft: { pan: { x: PAN, y: 0 } },
  ArrowRight: { pan: { x: -PAN, y: 0 } },
  ArrowUp: { pan: { x: 0, y: PAN } },
  ArrowDown: { pan: { x: 0, y: -PAN } },
  '+': { zoom: 1 },
  '=': { zoom: 1 },
  '-': { zoom: -1 },
  '0': 'fit',
  f: 'follow'
}
