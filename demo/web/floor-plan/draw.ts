import type { Placed } from './plan.js'

/** What is used of a canvas; a CanvasRenderingContext2D is one, and a test has its own. */
export interface Pen<Picture> {
  globalAlpha: number
  drawImage(picture: Picture, x: number, y: number, width: number, height: number): void
}

export interface Marker extends Placed {
  readonly name: string
  readonly kind: 'person' | 'thing'
  readonly zoneId: string | null
  /** Nothing was heard of it for a while. */
  readonly isFaint: boolean
}

const FAINT = 0.35
export const SPRITE_SIZE = 16

/**
 * What moves, with so many pixels for a metre. A marker is one copy of a picture that was drawn once, which costs a third of
 * drawing it, and a frame makes no objects that would have to be collected.
 */
export const drawMarkers = <Picture>(
  pen: Pen<Picture>,
  markers: readonly Marker[],
  sprites: Readonly<Record<Marker['kind'], Picture>>,
  scale: number
): void => {
  for (const { position, kind, isFaint } of markers) {
    const left = position.x * scale - SPRITE_SIZE / 2
    const top = position.y * scale - SPRITE_SIZE / 2
    pen.globalAlpha = isFaint ? FAINT : 1
    pen.drawImage(sprites[kind], left, top, SPRITE_SIZE, SPRITE_SIZE)
  }
  pen.globalAlpha = 1
}
