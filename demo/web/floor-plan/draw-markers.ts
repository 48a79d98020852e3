import { type Arrangement, centreOfCluster, NAME_HEIGHT, nameLeft } from './arrangement.js'
import type { Marker, MarkerKind, MusterStatus } from './marker.js'
import type { Pen } from './pen.js'
import type { Point, Size } from './plan.js'
import { toPanel, type View } from './viewport.js'

/** A pre-rendered picture: copying it costs a third of drawing the marker. */
export interface Sprite extends Size {
  readonly picture: unknown
}

export interface Sprites {
  readonly kinds: Readonly<Record<MarkerKind, Sprite>>
  /** Drawn over a marker during an emergency. */
  readonly muster: Readonly<Record<MusterStatus, Sprite>>
  /** The symbol of a cluster. */
  cluster(size: number, muster: MusterStatus | null): Sprite
  name(text: string): Sprite
}

const DIMMED = 0.35

/** Draws the markers at their current positions; those outside the panel are skipped. Allocates nothing for a marker. */
export const drawMarkers = (
  pen: Pen,
  { singles, clusters, names }: Arrangement,
  sprites: Sprites,
  view: View,
  panel: Size
): void => {
  for (const { position, kind, isStale, muster } of singles) {
    pen.globalAlpha = isStale ? DIMMED : 1
    drawCentred(pen, sprites.kinds[kind], position, view, panel)
    if (muster) drawCentred(pen, sprites.muster[muster], position, view, panel)
  }
  for (const cluster of clusters) {
    const { items } = cluster
    pen.globalAlpha = items.every(({ isStale }) => isStale) ? DIMMED : 1
    drawCentred(pen, sprites.cluster(items.length, musterOf(items)), centreOfCluster(cluster), view, panel)
  }
  pen.globalAlpha = 1
  for (const { marker, isLeft } of names) {
    const { picture, width, height } = sprites.name(marker.name)
    // At whole pixels the text is sharp, and the copy needs no interpolation.
    const left = Math.round(nameLeft(isLeft, marker.position.x * view.scale + view.x, width))
    const top = Math.round(marker.position.y * view.scale + view.y - NAME_HEIGHT / 2)
    pen.drawImage(picture, left, top, width, height)
  }
}

/** The circle in which the selected marker is: positions are measured. */
export const drawAccuracy = (
  pen: Pen,
  { position, accuracy }: Marker,
  view: View,
  colour: (token: `--${string}`) => string
): void => {
  if (accuracy === null) return
  const { x, y } = toPanel(view, position)
  pen.beginPath()
  pen.arc(x, y, accuracy * view.scale, 0, 2 * Math.PI)
  pen.fillStyle = colour('--accent')
  pen.globalAlpha = 0.18
  pen.fill()
  pen.globalAlpha = 1
  pen.strokeStyle = colour('--accent')
  pen.lineWidth = 1.5
  pen.stroke()
}

/** One missing person makes the cluster missing. */
const musterOf = (items: readonly Marker[]): MusterStatus | null => {
  if (items.some(({ muster }) => muster === 'missing')) return 'missing'
  return items.some(({ muster }) => muster === 'safe') ? 'safe' : null
}

const drawCentred = (pen: Pen, { picture, width, height }: Sprite, { x, y }: Point, view: View, panel: Size): void => {
  const left = x * view.scale + view.x - width / 2
  const top = y * view.scale + view.y - height / 2
  if (left + width < 0 || top + height < 0 || left > panel.width || top > panel.height) return
  pen.drawImage(picture, left, top, width, height)
}
