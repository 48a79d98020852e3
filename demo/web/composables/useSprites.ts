import { computed, type Ref } from 'vue'
import type { Sprite, Sprites } from '../floor-plan/draw-markers.js'
import {
  APPEARANCES,
  MARKER_KINDS,
  type MarkerKind,
  MUSTER_SIGNS,
  type MusterStatus,
  markerLabel
} from '../floor-plan/marker.js'
import type { Size } from '../floor-plan/plan.js'
import type { Colour } from './usePalette.js'

const MARKER_SIZE = 18
/** The grid of the marker paths. */
const GRID = 16
const NAME_FONT = '12px system-ui, sans-serif'
/** Names beyond this number are dropped from the cache; they are rendered again when they are needed. */
const MAX_NAMES = 2000

/** The pictures of markers in the current theme, at the resolution of the screen. */
export const useSprites = (colour: Ref<Colour>, ratio: Ref<number>) =>
  computed((): Sprites => spritesOf(colour.value, ratio.value))

export const spritesOf = (colour: Colour, ratio: number): Sprites => {
  const clusters = new Map<string, Sprite>()
  const names = new Map<string, Sprite>()
  const widths = measure()
  const size = { width: MARKER_SIZE, height: MARKER_SIZE }
  const kinds = MARKER_KINDS.map((kind) => [kind, render(size, ratio, (pen) => drawSymbol(pen, kind, colour))] as const)
  const renderName = (text: string): Sprite =>
    render({ width: widths(text) + 6, height: 16 }, ratio, (pen) => {
      pen.font = NAME_FONT
      pen.textBaseline = 'middle'
      // The outline keeps the name legible above walls and other markers.
      pen.lineWidth = 3
      pen.lineJoin = 'round'
      pen.strokeStyle = colour('--surface')
      pen.fillStyle = colour('--text')
      pen.strokeText(text, 3, 8)
      pen.fillText(text, 3, 8)
    })
  return {
    // One entry for each kind.
    kinds: Object.fromEntries(kinds) as Record<MarkerKind, Sprite>,
    muster: { safe: renderMuster('safe', ratio, colour), missing: renderMuster('missing', ratio, colour) },
    cluster: (size, muster) =>
      cached(clusters, `${size} ${muster}`, () =>
        renderCluster(size, ratio, colour, muster ? MUSTER_SIGNS[muster].colour : '--accent')
      ),
    name: (text) => {
      if (names.size > MAX_NAMES) names.clear()
      return cached(names, text, () => renderName(markerLabel(text)))
    }
  }
}

const cached = <Key>(sprites: Map<Key, Sprite>, key: Key, make: () => Sprite): Sprite => {
  const sprite = sprites.get(key) ?? make()
  sprites.set(key, sprite)
  return sprite
}

const drawSymbol = (pen: CanvasRenderingContext2D, kind: MarkerKind, colour: Colour): void => {
  const { path, colour: token } = APPEARANCES[kind]
  const symbol = new Path2D(path)
  // The outline separates markers that overlap.
  pen.translate(MARKER_SIZE / 2, MARKER_SIZE / 2)
  pen.translate(-GRID / 2, -GRID / 2)
  pen.lineWidth = 2.5
  pen.lineJoin = 'round'
  pen.strokeStyle = colour('--surface')
  pen.fillStyle = colour(token)
  pen.stroke(symbol)
  pen.fill(symbol)
}

const MUSTER_SIZE = 32
const BADGE_RADIUS = 6.5

const renderMuster = (status: MusterStatus, ratio: number, colour: Colour): Sprite =>
  render({ width: MUSTER_SIZE, height: MUSTER_SIZE }, ratio, (pen) => {
    const { colour: token, path } = MUSTER_SIGNS[status]
    const [centre, badge] = [MUSTER_SIZE / 2, MUSTER_SIZE - BADGE_RADIUS - 1]
    pen.strokeStyle = colour(token)
    pen.lineWidth = 2.5
    pen.beginPath()
    pen.arc(centre, centre, 10.5, 0, 2 * Math.PI)
    pen.stroke()
    pen.beginPath()
    pen.arc(badge, MUSTER_SIZE - badge, BADGE_RADIUS, 0, 2 * Math.PI)
    pen.fillStyle = colour(token)
    pen.fill()
    pen.translate(badge - 4.5, MUSTER_SIZE - badge - 4.5)
    pen.strokeStyle = colour('--surface')
    pen.lineWidth = 1.8
    pen.lineCap = 'round'
    pen.stroke(new Path2D(path))
  })

const renderCluster = (size: number, ratio: number, colour: Colour, token: `--${string}`): Sprite => {
  const radius = 9 + 2 * String(size).length
  return render({ width: 2 * radius + 2, height: 2 * radius + 2 }, ratio, (pen) => {
    pen.beginPath()
    pen.arc(radius + 1, radius + 1, radius - 1, 0, 2 * Math.PI)
    pen.fillStyle = colour('--surface')
    pen.fill()
    pen.lineWidth = 2.5
    pen.strokeStyle = colour(token)
    pen.stroke()
    pen.font = '600 11px system-ui, sans-serif'
    pen.textAlign = 'center'
    pen.textBaseline = 'middle'
    pen.fillStyle = colour('--text')
    pen.fillText(String(size), radius + 1, radius + 1.5)
  })
}

const measure = (): ((text: string) => number) => {
  const pen = document.createElement('canvas').getContext('2d')
  if (pen) pen.font = NAME_FONT
  return (text) => Math.ceil(pen?.measureText(text).width ?? 0)
}

const render = ({ width, height }: Size, ratio: number, draw: (pen: CanvasRenderingContext2D) => void): Sprite => {
  const picture = document.createElement('canvas')
  picture.width = Math.ceil(width * ratio)
  picture.height = Math.ceil(height * ratio)
  const pen = picture.getContext('2d')
  pen?.scale(ratio, ratio)
  if (pen) draw(pen)
  return { picture, width: picture.width / ratio, height: picture.height / ratio }
}
