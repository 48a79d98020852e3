import { imageSize } from 'image-size'
import { HttpError } from '../errors.js'
import type { PixelSize } from '../png.js'
import type { Call } from '../route.js'
import { fileIn, type Image, rasterImage } from '../uploads.js'
import { firstPage } from './pdf.js'
import { svgPlan } from './svg.js'
import { SvgError } from './svg-tokens.js'

/** A small file can contain a huge image, which would exhaust the memory of browsers. */
const MAX_PIXELS = 64_000_000

export type PlanFile = Image & PixelSize

const notAPlan = (): HttpError =>
  new HttpError(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send a PNG, JPEG or WebP image, an SVG drawing, or a PDF document.')

/** The plan in a form, as browsers can show it: the first page of a PDF document becomes an image. */
export const planIn = async (call: Call): Promise<PlanFile> => {
  const file = await fileIn(call)
  const bytes = Buffer.from(await file.arrayBuffer())
  const name = file.name.slice(0, 200)
  const beginning = bytes.toString('latin1', 0, 1024)
  if (beginning.includes('%PDF-')) return measured({ mediaType: 'image/png', name, bytes: await firstPage(bytes) })
  if (/^(?:\xef\xbb\xbf)?\s*</.test(beginning)) return { mediaType: 'image/svg+xml', name, ...checkedSvg(bytes) }
  const image = rasterImage(name, bytes)
  if (image === null) throw notAPlan()
  return measured(image)
}

const checkedSvg = (bytes: Buffer): ReturnType<typeof svgPlan> => {
  try {
    return svgPlan(bytes)
  } catch (error) {
    if (error instanceof SvgError) throw new HttpError(422, 'UNSAFE_SVG', error.message)
    throw error
  }
}

const measured = (image: Image): PlanFile => {
  const { width, height, orientation = 1 } = readSize(image.bytes)
  if (!(width > 0 && height > 0)) throw notAPlan()
  if (width * height > MAX_PIXELS)
    throw new HttpError(413, 'IMAGE_TOO_LARGE', `The image has more than ${MAX_PIXELS / 1_000_000} megapixels.`)
  // Photos that were taken upright are stored rotated.
  return { ...image, ...(orientation >= 5 ? { width: height, height: width } : { width, height }) }
}

const readSize = (bytes: Uint8Array) => {
  try {
    return imageSize(bytes)
  } catch {
    throw notAPlan()
  }
}
