import type { Placed, Point, Size } from './plan.js'
import { toScreen, type View } from './view.js'

/** What is used of a canvas; a CanvasRenderingContext2D is one, and a test has its own. */
export interface Pen<Picture = never> {
  fillStyle: unknown
  strokeStyle: unknown
  lineWidth: number
  globalAlpha: number
  font: string
  textAlign: string
  textBaseline: string
  beginPath(): void
  arc(x: number, y: number, radius: number, from: number, to: number): void
  roundRect(x: number, y: number, width: number, height: number, radius: number): void
  fill(): void
  stroke(): void
  fillText(text: string, x: number, y: number): void
  measureText(text: string): { readonly width: number }
  drawImage(picture: Picture, x: number, y: number, width: number, height: number): void
}

export interface Marker extends Placed {
  readonly name: string
  readonly kind: 'person' | 'thing'
  readonly zoneId: string | null
  /** Nothing was heard of it for a while. */
  readonly isFaint: boolean
}

export type Palette = Readonly<Record<'person' | 'thing' | 'outline' | 'tag' | 'tagText', string>>

const FONT = '600 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
const FULL_CIRCLE = Math.PI * 2
const FAINT = 0.35
const MARKER_RADIUS = 5
export const SPRITE_SIZE = 16

/** The picture of a marker, which is copied for each of them. */
export const drawSprite = (pen: Pen, kind: Marker['kind'], palette: Palette): void => {
  const middle = SPRITE_SIZE / 2
  pen.strokeStyle = palette.outline
  pen.fillStyle = palette[kind]
  pen.lineWidth = 3
  pen.beginPath()
  if (kind === 'person') pen.arc(middle, middle, MARKER_RADIUS, 0, FULL_CIRCLE)
  else pen.roundRect(middle - 4, middle - 4, 8, 8, 2)
  pen.stroke()
  pen.fill()
}

export interface MarkerLook<Picture> {
  readonly sprites: Readonly<Record<Marker['kind'], Picture>>
  readonly palette: Palette
  readonly selected: string | null
  readonly screen: Size
}

/**
 * What moves. A marker is one copy of a picture that was drawn once, which costs a third of drawing it, and a frame makes
 * no objects that would have to be collected.
 */
export const drawMarkers = <Picture>(
  pen: Pen<Picture>,
  markers: readonly Marker[],
  view: View,
  { sprites, palette, selected, screen }: MarkerLook<Picture>
): void => {
  const reach = SPRITE_SIZE / 2
  for (const { position, kind, isFaint } of markers) {
    const x = position.x * view.scale + view.x
    const y = position.y * view.scale + view.y
    if (x < -reach || y < -reach || x > screen.width + reach || y > screen.height + reach) continue
    pen.globalAlpha = isFaint ? FAINT : 1
    pen.drawImage(sprites[kind], x - reach, y - reach, SPRITE_SIZE, SPRITE_SIZE)
  }
  pen.globalAlpha = 1
  const chosen = selected === null ? undefined : markers.find(({ id }) => id === selected)
  if (chosen) drawSelected(pen, chosen.name, toScreen(view, chosen.position), palette, screen)
}

const drawSelected = (pen: Pen, name: string, { x, y }: Point, palette: Palette, screen: Size): void => {
  pen.strokeStyle = palette.person
  pen.lineWidth = 2
  pen.beginPath()
  pen.arc(x, y, MARKER_RADIUS + 5, 0, FULL_CIRCLE)
  pen.stroke()

  pen.font = FONT
  pen.textAlign = 'center'
  pen.textBaseline = 'middle'
  const width = pen.measureText(name).width + 16
  // The name stays on the screen, whatever its owner does.
  const left = Math.min(Math.max(x - width / 2, 4), Math.max(screen.width - width - 4, 4))
  const top = y - 40 < 4 ? y + 16 : y - 40
  pen.fillStyle = palette.tag
  pen.beginPath()
  pen.roundRect(left, top, width, 24, 6)
  pen.fill()
  pen.fillStyle = palette.tagText
  pen.fillText(name, left + width / 2, top + 12)
}
