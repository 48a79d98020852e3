import type { Placed } from './plan.js'

/** The part of CanvasRenderingContext2D that is used, so that tests can replace it. */
export interface Pen<Picture> {
  globalAlpha: number
  drawImage(picture: Picture, x: number, y: number, width: number, height: number): void
}

export interface Marker extends Placed {
  readonly name: string
  readonly kind: 'person' | 'thing'
  readonly zoneId: string | null
  readonly ageMs: number
  /** The position is out of date; the marker is dimmed. */
  readonly isStale: boolean
}

const DIMMED = 0.35
export const SPRITE_SIZE = 16

/**
 * Draws all markers; `scale` is in pixels per metre. Copying a pre-rendered image costs a third of drawing the marker, and
 * a frame allocates no objects.
 */
export const drawMarkers = <Picture>(
  pen: Pen<Picture>,
  markers: readonly Marker[],
  sprites: Readonly<Record<Marker['kind'], Picture>>,
  scale: number
): void => {
  for (const { position, kind, isStale } of markers) {
    const left = position.x * scale - SPRITE_SIZE / 2
    const top = position.y * scale - SPRITE_SIZE / 2
    pen.globalAlpha = isStale ? DIMMED : 1
    pen.drawImage(sprites[kind], left, top, SPRITE_SIZE, SPRITE_SIZE)
  }
  pen.globalAlpha = 1
}
