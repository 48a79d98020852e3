import { cornersOf } from '../../../schemas/polygon.js'
import type { FloorContext } from '../types.js'
import type { Drawing, Layer } from './layer.js'
import { boxAround, type Placed, type Point, type Rect, type Size } from './plan.js'
import { toPanel, type View } from './viewport.js'

type PlanZone = FloorContext['zones'][number]

const TINTS = { restricted: '--danger-soft', muster: '--good-soft', way: '--surface', room: '--sunken' } as const

const tintOf = ({ type, isRestricted, isMusterPoint }: PlanZone): `--${string}` => {
  if (isRestricted) return TINTS.restricted
  if (isMusterPoint) return TINTS.muster
  return type === 'corridor' || type === 'stairs' ? TINTS.way : TINTS.room
}

/** The areas of the zones, which only tint an uploaded plan. */
export const zonesLayer = (zones: readonly PlanZone[], hasPicture: boolean): Layer => {
  const areas = zones.map((zone) => ({ corners: cornersOf(zone.polygon ?? []), tint: tintOf(zone) }))
  return {
    surface: 'ground',
    draw: ({ pen, view, colour }) => {
      pen.globalAlpha = hasPicture ? 0.4 : 1
      for (const { corners, tint } of areas) {
        pen.fillStyle = colour(tint)
        pen.beginPath()
        for (const { x, y } of corners) pen.lineTo(x * view.scale + view.x, y * view.scale + view.y)
        pen.closePath()
        pen.fill()
      }
      pen.globalAlpha = 1
    }
  }
}

const LABEL_FONT = '600 12px system-ui, sans-serif'
const PADDING = 8
const LABEL_HEIGHT = 20
/** About as wide as a letter of a label, with room for the number of people. */
const LETTER = 7.5
const NUMBER_WIDTH = 24

/** The part of the floor whose positions are received. */
interface ReceivedPart {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

/**
 * The names of the zones with the number of people in them, in the same size at every zoom level. A name that does not fit
 * into the visible part of its zone is not shown, and neither is the number of a zone that is not completely received.
 */
export const zoneLabelsLayer = (
  zones: readonly PlanZone[],
  people: ReadonlyMap<string, number>,
  received: ReceivedPart | null = null
): Layer => {
  const labels = zones.flatMap(({ id, name, polygon }) => {
    const corners = cornersOf(polygon ?? [])
    if (corners.length === 0) return []
    const box = boxAround(corners)
    return [{ name, box, count: isReceived(box, received) ? (people.get(id) ?? 0) : 0 }]
  })
  return {
    surface: 'ground',
    draw: ({ pen, view, panel, colour }) => {
      pen.font = LABEL_FONT
      pen.textAlign = 'left'
      pen.textBaseline = 'top'
      // The outline keeps the text legible above furniture and uploaded plans.
      pen.strokeStyle = colour('--surface')
      pen.fillStyle = colour('--text')
      pen.lineWidth = 3
      pen.lineJoin = 'round'
      for (const { name, box, count } of labels) {
        const { x, y, width, height } = visiblePart(box, view, panel)
        const fits = (text: string): boolean => pen.measureText(text).width + 2 * PADDING <= width
        const number = count === 0 ? '' : String(count)
        const text = [`${number} ${name}`.trim(), number].find(fits)
        if (!text || height < LABEL_HEIGHT) continue
        pen.strokeText(text, x + PADDING, y + 5)
        pen.fillText(text, x + PADDING, y + 5)
      }
    },
    covered: (view, panel) =>
      labels.flatMap(({ name, box }) => {
        const { x, y, width, height } = visiblePart(box, view, panel)
        if (height < LABEL_HEIGHT || width < NUMBER_WIDTH) return []
        return [{ x, y, width: Math.min(PADDING + NUMBER_WIDTH + LETTER * name.length, width), height: LABEL_HEIGHT }]
      })
  }
}

const isReceived = ({ x, y, width, height }: Rect, part: ReceivedPart | null): boolean =>
  part === null || (x >= part.x && y >= part.y && x + width <= part.x + part.w && y + height <= part.y + part.h)

/** The part of a rectangle that the panel shows, in pixels. */
const visiblePart = (box: Rect, view: View, panel: Size): Rect => {
  const start = toPanel(view, box)
  const end = toPanel(view, { x: box.x + box.width, y: box.y + box.height })
  const [x, y] = [Math.max(start.x, 0), Math.max(start.y, 0)]
  return { x, y, width: Math.min(end.x, panel.width) - x, height: Math.min(end.y, panel.height) - y }
}

interface PlacedReceiver {
  readonly position?: Point | null | undefined
  readonly status?: string | null | undefined
}

export const receiversLayer = (receivers: readonly PlacedReceiver[]): Layer => ({
  surface: 'ground',
  draw: ({ pen, view, colour }) => {
    for (const { position, status } of receivers) {
      if (!position) continue
      const { x, y } = toPanel(view, position)
      pen.fillStyle = colour(status === 'online' ? '--control-line' : '--danger')
      pen.fillRect(x - 3, y - 3, 6, 6)
    }
  }
})

export const ambientLayer = (devices: readonly Placed[]): Layer => ({
  surface: 'ground',
  draw: ({ pen, view, colour }: Drawing) => {
    pen.strokeStyle = colour('--warning')
    pen.lineWidth = 1.5
    pen.lineJoin = 'miter'
    pen.beginPath()
    for (const { position } of devices) {
      const { x, y } = toPanel(view, position)
      pen.moveTo(x, y - 5)
      pen.lineTo(x + 5, y)
      pen.lineTo(x, y + 5)
      pen.lineTo(x - 5, y)
      pen.closePath()
    }
    pen.stroke()
  }
})
