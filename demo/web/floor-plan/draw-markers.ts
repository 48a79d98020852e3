import { type Arrangement, centreOfCluster, NAME_GAP } from './arrangement.js'
import { APPEARANCES, type MarkerKind, MUSTER_SIGNS, type MusterStatus, musterOf } from './marker.js'
import type { Point, Size } from './plan.js'
import type { TrailLine } from './tracks.js'
import { toPanel, type View } from './viewport.js'

export interface Drawing {
  /** Its unit is a CSS pixel of the panel; its origin is the top left corner of the panel. */
  readonly pen: CanvasRenderingContext2D
  readonly view: View
  readonly panel: Size
  /** The colour of a token of `src/ui/tokens.css` in the current theme. */
  readonly colour: (token: `--${string}`) => string
}

const DIMMED = 0.35
const OLDEST_TRAIL = 0.15

/** Draws the markers at their current positions; those outside the panel are skipped. */
export const drawMarkers = (drawing: Drawing, { singles, clusters, names }: Arrangement): void => {
  const { pen, colour } = drawing
  pen.lineJoin = 'round'
  for (const marker of singles) {
    pen.globalAlpha = marker.isStale ? DIMMED : 1
    drawAt(drawing, marker.position, () => {
      drawSymbol(drawing, marker.kind)
      if (marker.muster) drawMuster(drawing, marker.muster)
      const width = names.get(marker)
      if (width === undefined) return
      pen.font = '12px system-ui, sans-serif'
      pen.textAlign = 'left'
      drawText(drawing, marker.name, NAME_GAP, width)
    })
  }
  for (const cluster of clusters) {
    pen.globalAlpha = cluster.every(({ isStale }) => isStale) ? DIMMED : 1
    drawAt(drawing, centreOfCluster(cluster), () => {
      const muster = musterOf(cluster)
      const text = String(cluster.length)
      pen.beginPath()
      pen.arc(0, 0, 8 + 2 * text.length, 0, 2 * Math.PI)
      pen.lineWidth = 2.5
      pen.strokeStyle = colour(muster ? MUSTER_SIGNS[muster].colour : '--accent')
      pen.fillStyle = colour('--surface')
      pen.fill()
      pen.stroke()
      pen.font = '600 11px system-ui, sans-serif'
      pen.textAlign = 'center'
      drawText(drawing, text, 0)
    })
  }
  pen.globalAlpha = 1
}

/** The way of the selected marker, which fades towards its start. */
export const drawTrail = ({ pen, view, colour }: Drawing, lines: readonly TrailLine[]): void => {
  pen.strokeStyle = colour('--accent')
  pen.lineWidth = 3
  pen.lineCap = 'round'
  for (const { from, to, age } of lines) {
    const [start, end] = [toPanel(view, from), toPanel(view, to)]
    pen.globalAlpha = 1 - (1 - OLDEST_TRAIL) * age
    pen.beginPath()
    pen.moveTo(start.x, start.y)
    pen.lineTo(end.x, end.y)
    pen.stroke()
  }
  pen.globalAlpha = 1
}

/** Moves the origin to a position on the floor while something is drawn there. */
const drawAt = ({ pen, view, panel }: Drawing, position: Point, draw: () => void): void => {
  const { x, y } = toPanel(view, position)
  if (x < -SYMBOL || y < -SYMBOL || x > panel.width + SYMBOL || y > panel.height + SYMBOL) return
  pen.translate(x, y)
  draw()
  pen.translate(-x, -y)
}

const SYMBOL = 16
const paths = new Map<string, Path2D>()
const pathOf = (text: string): Path2D => {
  const path = paths.get(text) ?? new Path2D(text)
  paths.set(text, path)
  return path
}

const drawSymbol = ({ pen, colour }: Drawing, kind: MarkerKind): void => {
  const { path, colour: token } = APPEARANCES[kind]
  pen.translate(-SYMBOL / 2, -SYMBOL / 2)
  // The outline separates markers that overlap.
  pen.lineWidth = 2.5
  pen.strokeStyle = colour('--surface')
  pen.fillStyle = colour(token)
  pen.stroke(pathOf(path))
  pen.fill(pathOf(path))
  pen.translate(SYMBOL / 2, SYMBOL / 2)
}

const BADGE = { x: 8.5, y: -8.5, radius: 6.5 }

/** A ring with a badge at its upper right. */
const drawMuster = ({ pen, colour }: Drawing, status: MusterStatus): void => {
  const { colour: token, path } = MUSTER_SIGNS[status]
  pen.strokeStyle = colour(token)
  pen.fillStyle = colour(token)
  pen.lineWidth = 2.5
  pen.beginPath()
  pen.arc(0, 0, 10.5, 0, 2 * Math.PI)
  pen.stroke()
  pen.beginPath()
  pen.arc(BADGE.x, BADGE.y, BADGE.radius, 0, 2 * Math.PI)
  pen.fill()
  // The path is on a grid of 9 × 9.
  pen.translate(BADGE.x - 4.5, BADGE.y - 4.5)
  pen.strokeStyle = colour('--surface')
  pen.lineWidth = 1.8
  pen.stroke(pathOf(path))
  pen.translate(4.5 - BADGE.x, 4.5 - BADGE.y)
}

/** The outline keeps the text legible above walls and other markers. */
const drawText = ({ pen, colour }: Drawing, text: string, x: number, width?: number): void => {
  pen.textBaseline = 'middle'
  pen.lineWidth = 3
  pen.strokeStyle = colour('--surface')
  pen.fillStyle = colour('--text')
  pen.strokeText(text, x, 0.5, width)
  pen.fillText(text, x, 0.5, width)
}
