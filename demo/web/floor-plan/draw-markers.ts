import { type Arrangement, centreOfCluster } from './arrangement.js'
import type { Marker, MarkerKind, MusterStatus } from './marker.js'
import { NAME_HEIGHT, nameLeft, nameTop } from './name-places.js'
import type { Pen } from './pen.js'
import type { Point, Rect, Size } from './plan.js'
import type { View } from './viewport.js'

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

/**
 * Draws the markers at their current positions; those outside the panel are skipped. Allocates nothing for a marker. A name
 * that moves with its marker onto another name or the label of a room is not drawn until it finds another side.
 */
export const drawMarkers = (
  pen: Pen,
  { singles, clusters, names }: Arrangement,
  sprites: Sprites,
  view: View,
  panel: Size,
  covered: readonly Rect[] = []
): void => {
  for (const { position, kind, isStale, muster } of singles) {
    pen.globalAlpha = isStale ? DIMMED : 1
    drawCentred(pen, sprites.kinds[kind], position, view, panel)
    if (muster) drawCentred(pen, sprites.muster[muster], position, view, panel)
  }
  for (const cluster of clusters) {
    pen.globalAlpha = cluster.items.every(({ isStale }) => isStale) ? DIMMED : 1
    drawCentred(
      pen,
      sprites.cluster(cluster.items.length, musterOf(cluster.items)),
      centreOfCluster(cluster),
      view,
      panel
    )
  }
  pen.globalAlpha = 1
  drawn.length = 0
  for (const { marker, side } of names) {
    const { picture, width, height } = sprites.name(marker.name)
    // At whole pixels the text is sharp, and the copy needs no interpolation.
    const left = Math.round(nameLeft(side, marker.position.x * view.scale + view.x, width))
    const top = Math.round(nameTop(side, marker.position.y * view.scale + view.y))
    if (left + width < 0 || left > panel.width || top + NAME_HEIGHT < 0 || top > panel.height) continue
    if (isCovered(left, top, width, covered) || coversName(left, top, width)) continue
    drawn.push(left, top, width)
    pen.drawImage(picture, left, top, width, height)
  }
}

const isCovered = (left: number, top: number, width: number, covered: readonly Rect[]): boolean => {
  for (const { x, y, width: wide, height: high } of covered)
    if (left < x + wide && x < left + width && top < y + high && y < top + NAME_HEIGHT) return true
  return false
}

/** Left, top and width of the names in this frame. Shared by all frames, because a frame allocates nothing. */
const drawn: number[] = []
/** Names that only touch after rounding do not overlap. */
const TOLERANCE = 2

const coversName = (left: number, top: number, width: number): boolean => {
  for (let index = 0; index < drawn.length; index += 3) {
    const x = drawn[index] ?? 0
    const y = drawn[index + 1] ?? 0
    const wide = drawn[index + 2] ?? 0
    const isBeside = left + TOLERANCE >= x + wide || x + TOLERANCE >= left + width
    if (!isBeside && Math.abs(top - y) < NAME_HEIGHT - TOLERANCE) return true
  }
  return false
}

const RING_RADIUS = 12

/** A ring around the marker that the pointer is at, here or in the list, and its name unless the plan shows it already. */
export const drawHighlight = (
  pen: Pen,
  { id, position, name }: Marker,
  { names }: Pick<Arrangement, 'names'>,
  sprites: Sprites,
  view: View,
  colour: (token: `--${string}`) => string
): void => {
  const [x, y] = [position.x * view.scale + view.x, position.y * view.scale + view.y]
  pen.strokeStyle = colour('--text')
  pen.lineWidth = 2.5
  pen.beginPath()
  pen.arc(x, y, RING_RADIUS, 0, 2 * Math.PI)
  pen.stroke()
  if (names.some(({ marker }) => marker.id === id)) return
  const { picture, width, height } = sprites.name(name)
  const [left, top] = [Math.round(x - width / 2), Math.round(y - RING_RADIUS - 3 - height)]
  // Legible above the names of other markers.
  pen.fillStyle = colour('--surface')
  pen.fillRect(left, top, width, height)
  pen.drawImage(picture, left, top, width, height)
}

/** The circle in which the selected marker is: positions are measured. */
export const drawAccuracy = (
  pen: Pen,
  { position, accuracy }: Marker,
  view: View,
  colour: (token: `--${string}`) => string
): void => {
  if (accuracy === null) return
  pen.beginPath()
  pen.arc(position.x * view.scale + view.x, position.y * view.scale + view.y, accuracy * view.scale, 0, 2 * Math.PI)
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
