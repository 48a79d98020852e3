import { cornersOf } from '../../../schemas/polygon.js'
import type { FloorContext } from '../types.js'
import { boxAround, type Rect, type Size } from './plan.js'
import { toPanel, type View } from './viewport.js'

const PADDING = 8
const HEIGHT = 20
/** About as wide as a letter of a label. */
const LETTER = 7.5

/** The part of the floor whose positions are received. */
interface ReceivedPart {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

interface Options {
  readonly people: ReadonlyMap<string, number>
  /** Null for the whole floor. */
  readonly received: ReceivedPart | null
  readonly view: View
  readonly panel: Size
}

/**
 * The names of the zones with the number of people in them, in pixels of the panel. A name that does not fit into the visible
 * part of its zone is not shown, and neither is the number of a zone that is not completely received.
 */
export const zoneLabels = (zones: FloorContext['zones'], { people, received, view, panel }: Options) =>
  zones.flatMap(({ id, name, polygon }): (Rect & { readonly id: string; readonly text: string })[] => {
    const corners = cornersOf(polygon ?? [])
    if (corners.length === 0) return []
    const box = boxAround(corners)
    const start = toPanel(view, box)
    const end = toPanel(view, { x: box.x + box.width, y: box.y + box.height })
    const [x, y] = [Math.max(start.x, 0), Math.max(start.y, 0)]
    const width = Math.min(end.x, panel.width) - x
    const count = (isReceived(box, received) && people.get(id)) || ''
    const fits = (text: string): boolean => text !== '' && text.length * LETTER + 2 * PADDING <= width
    const text = [`${count} ${name}`.trim(), String(count)].find(fits)
    return text === undefined || Math.min(end.y, panel.height) - y < HEIGHT
      ? []
      : [{ id, text, x: x + PADDING, y, width: text.length * LETTER, height: HEIGHT }]
  })

const isReceived = ({ x, y, width, height }: Rect, part: ReceivedPart | null): boolean =>
  part === null || (x >= part.x && y >= part.y && x + width <= part.x + part.w && y + height <= part.y + part.h)
