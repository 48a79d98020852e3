import type { FloorContext } from '../types.js'
import type { Drawing, Layer } from './layer.js'
import { boxAround, cornersOf, type Placed, type Point, type Rect, type Size } from './plan.js'
import { textWidth } from './text-width.js'
import { toPanel, type View } from './viewport.js'

type PlanZone = FloorContext['zones'][number]

/** An uploaded plan: a picture of the whole floor. */
export const imageLayer = (floor: Size, picture: unknown): Layer => ({
  surface: 'ground',
  draw: ({ pen, view }) => {
    // Otherwise thin lines of a large picture disappear.
    pen.imageSmoothingQuality = 'high'
    pen.drawImage(picture, view.x, view.y, floor.width * view.scale, floor.height * view.scale)
  }
})

/** An uploaded plan already shows walls and rooms, so above it they are only tinted. */
const TRACED = 0.4

export const wallsLayer = (walls: FloorContext['walls'], isTraced: boolean): Layer => ({
  surface: 'ground',
  draw: ({ pen, view, colour }) => {
    pen.globalAlpha = isTraced ? TRACED : 1
    pen.strokeStyle = colour('--control-line')
    pen.lineWidth = 1.5
    pen.lineCap = 'round'
    pen.beginPath()
    for (const [x1, y1, x2, y2] of walls) {
      pen.moveTo(x1 * view.scale + view.x, y1 * view.scale + view.y)
      pen.lineTo(x2 * view.scale + view.x, y2 * view.scale + view.y)
    }
    pen.stroke()
    pen.globalAlpha = 1
  }
})

const TINTS = { restricted: '--danger-soft', muster: '--good-soft', way: '--surface', room: '--sunken' } as const

export const zoneKindOf = ({
  type,
  isRestricted,
  isMusterPoint
}: Pick<PlanZone, 'type' | 'isRestricted' | 'isMusterPoint'>): keyof typeof TINTS => {
  if (isRestricted) return 'restricted'
  if (isMusterPoint) return 'muster'
  return type === 'corridor' || type === 'stairs' ? 'way' : 'room'
}

/** The areas of the zones. */
export const zonesLayer = (zones: readonly PlanZone[], isTraced: boolean): Layer => {
  const areas = zones.map((zone) => ({ corners: cornersOf(zone.polygon), tint: TINTS[zoneKindOf(zone)] }))
  return {
    surface: 'ground',
    draw: ({ pen, view, colour }) => {
      pen.globalAlpha = isTraced ? TRACED : 1
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

const LABEL_FONT = '11px system-ui, sans-serif'
const COUNT_FONT = '600 12px system-ui, sans-serif'
const LABEL_PADDING = 8
const LABEL_HEIGHT = 20

/**
 * The names of the zones with the number of people in them, in the same size at every zoom level. A name that does not fit
 * into the visible part of its zone is not shown, and neither is the number of a zone that is not completely received.
 */
export const zoneLabelsLayer = (
  zones: readonly PlanZone[],
  people: ReadonlyMap<string, number>,
  received: ReceivedPart | null = null
): Layer => {
  const boxes = zones.flatMap(({ id, name, polygon }) => {
    const corners = cornersOf(polygon)
    return corners.length > 0 ? [{ id, name, box: boxAround(corners) }] : []
  })
  return {
    surface: 'ground',
    draw: (drawing) => {
      for (const { id, name, box } of boxes)
        drawLabel(drawing, box, name, isReceived(box, received) ? (people.get(id) ?? 0) : 0)
    },
    covered: (view, panel) => boxes.flatMap(({ name, box }) => coveredByLabel(visiblePart(box, view, panel), name))
  }
}

/** The longest number of people before a name. */
const COUNT_WIDTH = 24

/** The corner of a zone with its name, or with the number of people only. The numbers change, the corner does not. */
const coveredByLabel = ({ x, y, width, height }: Rect, name: string): readonly Rect[] => {
  if (height < LABEL_HEIGHT || width < COUNT_WIDTH) return []
  const wanted = LABEL_PADDING + COUNT_WIDTH + textWidth(name)
  return [{ x, y, width: Math.min(wanted, width), height: LABEL_HEIGHT }]
}

/** The part of the floor whose positions are received. */
interface ReceivedPart {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

const isReceived = ({ x, y, width, height }: Rect, part: ReceivedPart | null): boolean =>
  part === null || (x >= part.x && y >= part.y && x + width <= part.x + part.w && y + height <= part.y + part.h)

const drawLabel = ({ pen, view, panel, colour }: Drawing, box: Rect, name: string, people: number): void => {
  const { x, y, width, height } = visiblePart(box, view, panel)
  if (height < LABEL_HEIGHT) return
  const room = width - 2 * LABEL_PADDING
  const count = people === 0 ? '' : `${people} `
  pen.font = COUNT_FONT
  const countWidth = count === '' ? 0 : pen.measureText(count).width + 2
  if (countWidth > room) return
  pen.textAlign = 'left'
  pen.textBaseline = 'top'
  // The outline keeps the text legible above a heat map.
  pen.strokeStyle = colour('--surface')
  pen.lineWidth = 3
  pen.lineJoin = 'round'
  const write = (text: string, left: number, top: number, token: `--${string}`): void => {
    pen.strokeText(text, left, top)
    pen.fillStyle = colour(token)
    pen.fillText(text, left, top)
  }
  if (count !== '') write(count, x + LABEL_PADDING, y + 5, '--text')
  pen.font = LABEL_FONT
  if (countWidth + pen.measureText(name).width > room) return
  write(name, x + LABEL_PADDING + countWidth, y + 6, '--muted')
}

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

const isOnline = ({ status }: PlacedReceiver): boolean => status === 'online'

export const receiversLayer = (receivers: readonly PlacedReceiver[]): Layer => ({
  surface: 'ground',
  draw: ({ pen, view, colour }) => {
    for (const receiver of receivers) {
      if (!receiver.position) continue
      const { x, y } = toPanel(view, receiver.position)
      pen.fillStyle = colour(isOnline(receiver) ? '--control-line' : '--danger')
      pen.fillRect(x - 3, y - 3, 6, 6)
    }
  }
})

export const ambientLayer = (devices: readonly Placed[]): Layer => ({
  surface: 'ground',
  draw: ({ pen, view, colour }) => {
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
