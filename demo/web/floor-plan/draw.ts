import type { Placed } from './hit-test.js'
import type { Palette } from './palette.js'
import { boxAround, type Plan, type Point, type Size, type Zone } from './plan.js'
import { toScreen, type View } from './view.js'

/** What is used of a canvas; a CanvasRenderingContext2D is one, and a test has its own. */
export interface Pen<Picture = never> {
  fillStyle: unknown
  strokeStyle: unknown
  lineWidth: number
  lineCap: string
  globalAlpha: number
  font: string
  textAlign: string
  textBaseline: string
  beginPath(): void
  closePath(): void
  moveTo(x: number, y: number): void
  lineTo(x: number, y: number): void
  arc(x: number, y: number, radius: number, from: number, to: number): void
  rect(x: number, y: number, width: number, height: number): void
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
  /** Nothing was heard of it for a while. */
  readonly isFaint: boolean
}

export interface AmbientMark extends Placed {
  readonly strength: number
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
const FULL_CIRCLE = Math.PI * 2
const FAINT = 0.35
const TRACED = 0.4
export const MARKER_RADIUS = 5
const LABEL_INSET = 8
const LABEL_LINE = 14

export interface PlanLook {
  /** How many people are in which zone. */
  readonly counts: ReadonlyMap<string, number>
  readonly highlighted: string | null
  /** Whether there is a picture below. */
  readonly isTraced: boolean
}

/** What does not move, on a layer of its own: drawn once for a view. */
export const drawPlan = (
  pen: Pen,
  plan: Plan,
  view: View,
  palette: Palette,
  { counts, highlighted, isTraced }: PlanLook
): void => {
  // Over a plan that somebody has uploaded, rooms are only tinted: the picture has the walls.
  pen.globalAlpha = isTraced ? TRACED : 1
  for (const zone of plan.zones) {
    pen.fillStyle = zone.id === highlighted ? palette.highlight : fillOf(zone, palette)
    outline(pen, zone.polygon, view)
    pen.fill()
  }

  pen.globalAlpha = 1
  pen.strokeStyle = palette.wall
  pen.lineWidth = Math.max(1.5, view.scale * 0.14)
  pen.lineCap = 'round'
  pen.beginPath()
  for (const [x1, y1, x2, y2] of isTraced ? [] : plan.walls) {
    const from = toScreen(view, { x: x1, y: y1 })
    const to = toScreen(view, { x: x2, y: y2 })
    pen.moveTo(from.x, from.y)
    pen.lineTo(to.x, to.y)
  }
  pen.stroke()

  for (const { position, isOnline } of plan.receivers) {
    const { x, y } = toScreen(view, position)
    pen.fillStyle = isOnline ? palette.receiver : palette.receiverOff
    pen.beginPath()
    pen.rect(x - 2.5, y - 2.5, 5, 5)
    pen.fill()
  }

  pen.textAlign = 'left'
  pen.textBaseline = 'middle'
  for (const zone of plan.zones) drawLabel(pen, zone, view, palette, counts.get(zone.id) ?? 0)
}

const fillOf = ({ isMusterPoint, isRestricted, kind }: Zone, palette: Palette): string => {
  if (isMusterPoint) return palette.muster
  if (isRestricted) return palette.restricted
  return kind === 'corridor' || kind === 'stairs' ? palette.corridor : palette.room
}

const outline = (pen: Pen, polygon: readonly Point[], view: View): void => {
  pen.beginPath()
  for (const [index, corner] of polygon.entries()) {
    const { x, y } = toScreen(view, corner)
    if (index === 0) pen.moveTo(x, y)
    else pen.lineTo(x, y)
  }
  pen.closePath()
}

/** The name of a zone and how many are inside; left out where there is no room for it. */
const drawLabel = (pen: Pen, { name, polygon }: Zone, view: View, palette: Palette, count: number): void => {
  const box = boxAround(polygon)
  const { x, y } = toScreen(view, box)
  const room = box.width * view.scale - 2 * LABEL_INSET
  const countText = count > 0 ? String(count) : ''
  pen.font = `600 12px ${FONT}`
  const countWidth = pen.measureText(countText).width
  if (countWidth > room) return
  pen.fillStyle = palette.count
  pen.fillText(countText, x + LABEL_INSET, y + LABEL_LINE)
  pen.font = `500 11px ${FONT}`
  const nameAt = countText === '' ? 0 : countWidth + 6
  if (nameAt + pen.measureText(name).width > room) return
  pen.fillStyle = palette.label
  pen.fillText(name, x + LABEL_INSET + nameAt, y + LABEL_LINE)
}

/** A picture of a marker, for every look that one can have. */
export type Sprites<Picture> = Readonly<Record<string, Picture>>

export const SPRITE_SIZE = 16
const LOOKS = (['person', 'thing'] as const).flatMap((kind) => [true, false].map((isFaint) => ({ kind, isFaint })))
const FAINT_LOOKS = { person: 'faint person', thing: 'faint thing' } as const
const lookOf = ({ kind, isFaint }: Pick<Marker, 'kind' | 'isFaint'>): string => (isFaint ? FAINT_LOOKS[kind] : kind)

/** `picture` makes one of this many pixels in each direction, and draws on it. */
export const spritesOf = <Picture>(
  palette: Palette,
  picture: (size: number, draw: (pen: Pen) => void) => Picture
): Sprites<Picture> =>
  Object.fromEntries(LOOKS.map((look) => [lookOf(look), picture(SPRITE_SIZE, (pen) => drawMarker(pen, look, palette))]))

const drawMarker = (pen: Pen, { kind, isFaint }: Pick<Marker, 'kind' | 'isFaint'>, palette: Palette): void => {
  const middle = SPRITE_SIZE / 2
  pen.globalAlpha = isFaint ? FAINT : 1
  pen.strokeStyle = palette.outline
  pen.fillStyle = palette[kind]
  pen.lineWidth = 3
  pen.beginPath()
  if (kind === 'person') pen.arc(middle, middle, MARKER_RADIUS, 0, FULL_CIRCLE)
  else pen.roundRect(middle - 4, middle - 4, 8, 8, 2)
  pen.stroke()
  pen.fill()
}

/**
 * What moves, on a layer of its own. A marker is one copy of a picture that was drawn once, which costs a third of drawing
 * it, and a frame makes no objects that would have to be collected.
 */
export const drawMarkers = <Picture>(
  pen: Pen<Picture>,
  markers: readonly Marker[],
  view: View,
  palette: Palette,
  { sprites, selected, screen }: MarkerLook<Picture>
): void => {
  const reach = SPRITE_SIZE / 2
  for (const marker of markers) {
    const x = marker.position.x * view.scale + view.x
    const y = marker.position.y * view.scale + view.y
    if (x < -reach || y < -reach || x > screen.width + reach || y > screen.height + reach) continue
    const sprite = sprites[lookOf(marker)]
    if (sprite) pen.drawImage(sprite, x - reach, y - reach, SPRITE_SIZE, SPRITE_SIZE)
  }
  const chosen = selected === null ? undefined : markers.find(({ id }) => id === selected)
  if (chosen) drawSelected(pen, chosen, toScreen(view, chosen.position), palette, screen)
}

export interface MarkerLook<Picture> {
  readonly sprites: Sprites<Picture>
  readonly selected: string | null
  readonly screen: Size
}

const drawSelected = (pen: Pen, { name }: Marker, { x, y }: Point, palette: Palette, screen: Size): void => {
  pen.strokeStyle = palette.selected
  pen.lineWidth = 2
  pen.beginPath()
  pen.arc(x, y, MARKER_RADIUS + 5, 0, FULL_CIRCLE)
  pen.stroke()

  pen.font = `600 12px ${FONT}`
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

export const drawAmbient = (pen: Pen, marks: readonly AmbientMark[], view: View, palette: Palette): void => {
  pen.strokeStyle = palette.ambient
  pen.lineWidth = 1.5
  for (const { position, strength } of marks) {
    const { x, y } = toScreen(view, position)
    pen.globalAlpha = 0.4 + 0.6 * strength
    pen.beginPath()
    pen.moveTo(x, y - 4)
    pen.lineTo(x + 4, y)
    pen.lineTo(x, y + 4)
    pen.lineTo(x - 4, y)
    pen.closePath()
    pen.stroke()
  }
  pen.globalAlpha = 1
}
