/** An image with its size in pixels. */
export interface Image {
  readonly mediaType: string
  readonly bytes: Buffer
  readonly width: number
  readonly height: number
}

export const SVG = 'image/svg+xml'

type Size = Pick<Image, 'width' | 'height'>

const MAX_SVG_BYTES = 2 * 1024 * 1024

/** The image in a file, detected by its bytes and not by the declared type; null if it is none. */
export const imageIn = (bytes: Buffer): Image | null => {
  const [mediaType, size] =
    bytes.toString('latin1', 1, 4) === 'PNG' ? ['image/png', pngSize(bytes)] : sizeOfOther(bytes)
  return size !== null && size.width > 0 && size.height > 0 ? { mediaType, bytes, ...size } : null
}

const sizeOfOther = (bytes: Buffer): [string, Size | null] =>
  bytes.toString('hex', 0, 2) === 'ffd8' ? ['image/jpeg', jpegSize(bytes)] : [SVG, svgSize(bytes)]

const pngSize = (bytes: Buffer): Size | null => {
  if (bytes.length < 24 || bytes.toString('hex', 0, 8) !== '89504e470d0a1a0a') return null
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** The markers of frames, which have the size; the three others in this range are tables. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** A file of empty segments would be searched for seconds. */
const MAX_SEGMENTS = 200

const jpegSize = (bytes: Buffer): Size | null => {
  for (let at = 2, segments = 0; at + 9 <= bytes.length && segments < MAX_SEGMENTS; segments += 1) {
    if (bytes[at] !== 0xff) return null
    const [marker, length] = [bytes[at + 1] ?? 0, bytes.readUInt16BE(at + 2)]
    if (isFrame(marker)) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    if (length < 2) return null
    at += 2 + length
  }
  return null
}

/** Declarations, processing instructions, and whatever runs, embeds or loads something. */
const UNSAFE_SVG =
  /<!(?!--)|<\?(?!xml[\s?])|<(?:[\w-]+:)?(?:script|foreignobject|iframe|embed|object|audio|video|image|animate\w*|set|handler|a)\b|\son\w+\s*=|javascript:|@import|\bhref\s*=\s*["']?\s*[^"'#\s]|url\(\s*["']?\s*[^"'#\s)]/i

/** Strict, because browsers run what an SVG drawing contains: an unusual one is rejected, not cleaned. */
const svgSize = (bytes: Buffer): Size | null => {
  if (bytes.length > MAX_SVG_BYTES || bytes.includes(0)) return null
  const text = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
  const [, attributes] = /^\s*(?:<\?xml[^>]*\?>)?\s*<svg(\s[^>]*)>/.exec(text) ?? []
  // A character reference could hide a word that is searched for.
  if (attributes === undefined || UNSAFE_SVG.test(text) || /&#|&(?!(?:amp|lt|gt|quot|apos);)/.test(text)) return null
  if (!attributes.includes('"http://www.w3.org/2000/svg"') || !/<\/svg>\s*$|\/>\s*$/.test(text)) return null
  const lengthOf = (name: string): number => Number(new RegExp(`\\s${name}="([\\d.]+)(?:px)?"`).exec(attributes)?.[1])
  const [, width, height] = /\sviewBox="[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+([\d.]+)"/.exec(attributes) ?? []
  return { width: lengthOf('width') || Number(width) || 0, height: lengthOf('height') || Number(height) || 0 }
}
