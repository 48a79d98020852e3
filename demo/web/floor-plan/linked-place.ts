import type { FloorContext } from '../types.js'
import type { Layer } from './layer.js'
import { cornersOf, type Point } from './plan.js'
import { toPanel } from './viewport.js'

/** The zone or receiver that a link names: an area with corners, or one point. */
export interface LinkedPlace {
  readonly title: string
  readonly isZone: boolean
  readonly corners: readonly Point[]
}

/** The place on this floor that the parameters `zone` and `receiver` of the URL name; null if there is none. */
export const linkedPlaceIn = (
  { zones, receivers }: Pick<FloorContext, 'zones' | 'receivers'>,
  query: { readonly zone?: unknown; readonly receiver?: unknown }
): LinkedPlace | null => {
  const zone = zones.find(({ id }) => id === query.zone)
  if (zone) return { title: `Zone ${zone.name}`, isZone: true, corners: cornersOf(zone.polygon) }
  const receiver = receivers.find(({ id }) => id === query.receiver)
  if (!receiver) return null
  const { name, id, status, position } = receiver
  return {
    title: `Receiver ${name ?? id} (${status ?? 'unknown'})`,
    isZone: false,
    corners: position ? [position] : []
  }
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
