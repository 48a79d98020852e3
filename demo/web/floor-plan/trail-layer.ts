import type { Layer } from './layer.js'
import type { Point } from './plan.js'
import { toPanel } from './viewport.js'

/** A straight part of the recent way of a transmitter. `age` is from 0 now to 1 at the start of the trail. */
export interface TrailLine {
  readonly from: Point
  readonly to: Point
  readonly age: number
}

const OLDEST_ALPHA = 0.15

/** The way of the selected marker, which fades towards its start. */
export const trailLayer = (lines: readonly TrailLine[]): Layer => ({
  surface: 'markers',
  draw: ({ pen, view, colour }) => {
    pen.strokeStyle = colour('--accent')
    pen.lineWidth = 3
    pen.lineCap = 'round'
    for (const { from, to, age } of lines) {
      const [start, end] = [toPanel(view, from), toPanel(view, to)]
      pen.globalAlpha = 1 - (1 - OLDEST_ALPHA) * age
      pen.beginPath()
      pen.moveTo(start.x, start.y)
      pen.lineTo(end.x, end.y)
      pen.stroke()
    }
    pen.globalAlpha = 1
  }
})
