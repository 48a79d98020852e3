import { cornersOf } from '../../../schemas/polygon.js'
import type { FloorContext } from '../types.js'
import type { Layer } from './layer.js'
import type { Point } from './plan.js'
import { toPanel } from './viewport.js'

/** The zone or receiver that a link names, such as that of an alert: an area with corners, or one point. */
export interface LinkedPlace {
  readonly title: string
  readonly corners: readonly Point[]
}

/** The place on this floor with one of these ids; null if there is none. */
export const linkedPlaceIn = (
  { zones, receivers }: Pick<FloorContext, 'zones' | 'receivers'>,
  { zone: zoneId, receiver: receiverId }: { readonly zone: string | null; readonly receiver: string | null }
): LinkedPlace | null => {
  const zone = zones.find(({ id }) => id === zoneId)
  if (zone) return { title: `Zone ${zone.name}`, corners: cornersOf(zone.polygon ?? []) }
  const receiver = receivers.find(({ id }) => id === receiverId)
  if (!receiver) return null
  const { name, id, status, position } = receiver
  return { title: `Receiver ${name ?? id} (${status ?? 'unknown'})`, corners: position ? [position] : [] }
}

const CIRCLE_RADIUS = 13

/** Outlines the place, above zones and below markers. */
export const linkedPlaceLayer = ({ corners }: LinkedPlace): Layer => ({
  surface: 'ground',
  draw: ({ pen, view, colour }) => {
    const [first, ...others] = corners.map((corner) => toPanel(view, corner))
    if (first === undefined) return
    pen.strokeStyle = colour('--accent')
    pen.lineWidth = 3
    pen.lineJoin = 'round'
    pen.beginPath()
    if (others.length === 0) pen.arc(first.x, first.y, CIRCLE_RADIUS, 0, 2 * Math.PI)
    else {
      pen.moveTo(first.x, first.y)
      for (const { x, y } of others) pen.lineTo(x, y)
      pen.closePath()
    }
    pen.stroke()
  }
})
