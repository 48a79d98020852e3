import type { Layer } from './layer.js'
import type { Marker } from './marker.js'
import type { Point } from './plan.js'

/** The path of one transmitter. */
export interface Trail {
  readonly id: string
  readonly points: readonly Point[]
}

const ALPHA = 0.45

/** The recent paths, up to the current positions of the markers. The selected one is emphasised. */
export const trailLayer = (trails: readonly Trail[], markers: readonly Marker[], selected: string | null): Layer => {
  const positions = new Map(markers.map(({ id, position }) => [id, position]))
  return {
    surface: 'markers',
    draw: ({ pen, view, colour }) => {
      pen.lineCap = 'round'
      pen.lineJoin = 'round'
      for (const { id, points } of trails) {
        const isSelected = id === selected
        pen.strokeStyle = colour(isSelected ? '--accent-strong' : '--accent')
        pen.lineWidth = isSelected ? 3 : 1.5
        pen.globalAlpha = isSelected ? 1 : ALPHA
        pen.beginPath()
        for (const { x, y } of points) pen.lineTo(x * view.scale + view.x, y * view.scale + view.y)
        const end = positions.get(id)
        if (end) pen.lineTo(end.x * view.scale + view.x, end.y * view.scale + view.y)
        pen.stroke()
      }
      pen.globalAlpha = 1
    }
  }
}
