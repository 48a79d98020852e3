import { png } from '../png.js'
import { pick, seededRandom } from '../random.js'

// Drawn portraits, so that the demo has photos without showing real people.

/** Twice the width in which pages show a photo, for dense screens. */
const SIZE = 88

/** The picture is 100 wide and high. */
interface Shape {
  /** How much of the shape is at a point, from 0 to 1. */
  readonly at: (x: number, y: number) => number
  /** Outside of it the shape covers nothing. */
  readonly box: Box
}

interface Box {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

const ellipse = (centerX: number, centerY: number, radiusX: number, radiusY: number): Shape => {
  const smallest = Math.min(radiusX, radiusY)
  // The edge is one unit wide, which smooths it.
  const reach = 1 + 0.5 / smallest
  return {
    at: (x, y) => {
      const right = (x - centerX) / radiusX
      const down = (y - centerY) / radiusY
      return Math.min(1, Math.max(0, 0.5 + (1 - Math.sqrt(right * right + down * down)) * smallest))
    },
    box: {
      left: centerX - radiusX * reach,
      right: centerX + radiusX * reach,
      top: centerY - radiusY * reach,
      bottom: centerY + radiusY * reach
    }
  }
}

const union = (one: Shape, other: Shape): Shape => ({
  at: (x, y) => Math.max(one.at(x, y), other.at(x, y)),
  box: {
    left: Math.min(one.box.left, other.box.left),
    right: Math.max(one.box.right, other.box.right),
    top: Math.min(one.box.top, other.box.top),
    bottom: Math.max(one.box.bottom, other.box.bottom)
  }
})

const difference = (shape: Shape, hole: Shape): Shape => ({
  at: (x, y) => Math.min(shape.at(x, y), 1 - hole.at(x, y)),
  box: shape.box
})

const ring = (centerX: number, centerY: number, radius: number, width: number): Shape =>
  difference(ellipse(centerX, centerY, radius, radius), ellipse(centerX, centerY, radius - width, radius - width))

const SHOULDERS = ellipse(50, 108, 42, 37)
const NECK = ellipse(50, 68, 9, 17)
const EARS = union(ellipse(32, 48, 3.5, 5), ellipse(68, 48, 3.5, 5))
const HEAD = union(ellipse(50, 46, 18, 22), EARS)
const EYES = union(ellipse(43, 47, 2, 2.4), ellipse(57, 47, 2, 2.4))
const MOUTH = difference(ellipse(50, 56, 7, 5.5), ellipse(50, 53.5, 9, 5.5))
const GLASSES = union(ring(42.5, 47, 6.5, 1.4), ring(57.5, 47, 6.5, 1.4))

/** The hair above the face and behind the head. */
const HAIRCUTS: readonly { readonly above: Shape; readonly behind: Shape | null }[] = [
  { above: difference(ellipse(50, 37, 20, 18), ellipse(55, 54, 20, 22)), behind: null },
  { above: difference(ellipse(50, 36, 20, 17), ellipse(50, 55, 22, 22)), behind: null },
  { above: difference(ellipse(50, 33, 23, 18), ellipse(50, 56, 19, 22)), behind: ellipse(50, 36, 25, 23) },
  { above: difference(ellipse(50, 36, 21, 18), ellipse(45, 57, 20, 24)), behind: ellipse(50, 48, 24, 27) },
  {
    above: difference(ellipse(50, 36, 21, 18), ellipse(56, 57, 21, 24)),
    behind: union(ellipse(50, 45, 24, 28), ellipse(50, 70, 25, 20))
  },
  { above: difference(ellipse(50, 37, 20, 18), ellipse(50, 57, 19, 24)), behind: ellipse(50, 18, 9, 8) }
]

const BACKGROUNDS = [0xcfd8dc, 0xc5cae9, 0xb2dfdb, 0xffe0b2, 0xd7ccc8, 0xc8e6c9, 0xf8d7e3, 0xbbdefb]
const SKINS = [0xf6d7c3, 0xeec1a2, 0xd9a37e, 0xb97f57, 0x8d5a3b, 0x6b452f]
const HAIRS = [0x2b2320, 0x4a3428, 0x6f4a2f, 0xa5703d, 0xcfa866, 0x9a9a9a, 0xa8503c]
const CLOTHES = [0x37474f, 0x1565c0, 0x00695c, 0x6d4c41, 0x5e35b1, 0xad1457, 0xf5f5f5, 0xb0bec5]
const INK = 0x30262a

const CHANNELS = [16, 8, 0]
const channel = (colour: number, bits: number): number => (colour >> bits) & 0xff
const mixed = (colour: number, other: number, share: number): number =>
  CHANNELS.reduce((sum, bits) => {
    const value = channel(colour, bits) + (channel(other, bits) - channel(colour, bits)) * share
    return sum + (Math.round(value) << bits)
  }, 0)

type Layer = readonly [shape: Shape, colour: number]

/** A picture of a person as PNG file. The same number always gives the same picture. */
export const portrait = (number: number): Buffer => {
  const random = seededRandom(number)
  const [skin, hair] = [pick(random, SKINS), pick(random, HAIRS)]
  const { above, behind } = pick(random, HAIRCUTS)
  const layers: Layer[] = [
    ...(behind === null ? [] : [[behind, mixed(hair, 0, 0.12)] as const]),
    [SHOULDERS, pick(random, CLOTHES)],
    [NECK, mixed(skin, 0, 0.12)],
    [HEAD, skin],
    [above, hair],
    [EYES, INK],
    [MOUTH, mixed(skin, INK, 0.6)],
    ...(random() < 0.25 ? [[GLASSES, INK] as const] : [])
  ]
  return png({ width: SIZE, height: SIZE }, drawn(pick(random, BACKGROUNDS), layers))
}

/** Draws the layers over each other. Returns rows of RGB pixels, each after the byte of its PNG filter. */
const drawn = (background: number, layers: readonly Layer[]): Buffer => {
  const colours = new Uint32Array(SIZE * SIZE).fill(background)
  for (const [shape, ink] of layers) drawLayer(colours, shape, ink)
  const rowBytes = 1 + SIZE * CHANNELS.length
  const rows = Buffer.alloc(SIZE * rowBytes)
  for (const [pixel, colour] of colours.entries()) {
    const [row, column] = [Math.floor(pixel / SIZE), pixel % SIZE]
    rows.writeUIntBE(colour, row * rowBytes + 1 + column * CHANNELS.length, CHANNELS.length)
  }
  return rows
}

/** Only in the box of the shape: most shapes cover a small part of the picture. */
const drawLayer = (colours: Uint32Array, { at, box }: Shape, ink: number): void => {
  const [lastRow, lastColumn] = [lastPixel(box.bottom), lastPixel(box.right)]
  for (let row = firstPixel(box.top); row <= lastRow; row += 1) {
    for (let column = firstPixel(box.left); column <= lastColumn; column += 1) {
      const share = at(((column + 0.5) * 100) / SIZE, ((row + 0.5) * 100) / SIZE)
      const pixel = row * SIZE + column
      if (share > 0) colours[pixel] = share === 1 ? ink : mixed(colours[pixel] ?? 0, ink, share)
    }
  }
}

const firstPixel = (start: number): number => Math.max(0, Math.floor((start * SIZE) / 100 - 0.5))
const lastPixel = (end: number): number => Math.min(SIZE - 1, Math.ceil((end * SIZE) / 100 - 0.5))
