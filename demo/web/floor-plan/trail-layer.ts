import type { FloorContext } from '../types.js'
import { colourScale, TRAIL_TOKENS } from './colour-scale.js'
import type { Layer } from './layer.js'
import type { Point } from './plan.js'
import { crossesWall } from './walls.js'

/** A straight part of a trail. */
export interface TrailLine {
  readonly from: Point
  readonly to: Point
  /** From 0 at the start of the trail to 1 now. */
  readonly part: number
  /** Whether the way was recorded. Otherwise only its ends are known. */
  readonly isKnown: boolean
}

/** The recent path of one transmitter. Lines that do not touch are separated by another floor or by silence. */
export interface Trail {
  readonly lines: readonly TrailLine[]
  /** The last position, if the transmitter is still there: the trail continues to its marker. */
  readonly last: Point | null
}

const WIDTH = 3
const UNKNOWN_WIDTH = 2
const DOTS = [1, 6]

/** The trail of the selected marker in the colours of its time, up to the current position of the marker. */
export const trailLayer = ({ lines, last }: Trail, marker: Point | null, walls: FloorContext['walls']): Layer => ({
  surface: 'markers',
  draw: ({ pen, view, colour }) => {
    const colourAt = colourScale(TRAIL_TOKENS.map(colour))
    const end = marker && last ? [{ from: last, to: marker, part: 1, isKnown: !crossesWall(last, marker, walls) }] : []
    pen.lineCap = 'round'
    for (const { from, to, part, isKnown } of [...lines, ...end]) {
      pen.strokeStyle = colourAt(part)
      pen.lineWidth = isKnown ? WIDTH : UNKNOWN_WIDTH
      pen.setLineDash(isKnown ? [] : DOTS)
      pen.beginPath()
      pen.moveTo(from.x * view.scale + view.x, from.y * view.scale + view.y)
      pen.lineTo(to.x * view.scale + view.x, to.y * view.scale + view.y)
      pen.stroke()
    }
    pen.setLineDash([])
  }
})
