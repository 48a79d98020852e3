import { HttpError } from '../errors.js'
import type { PixelSize } from '../png.js'
import type { Call } from '../route.js'
import { fileIn, type Image, measuredImage } from '../uploads.js'
import { firstPage } from './pdf.js'
import { svgPlan } from './svg.js'
import { SvgError } from './svg-tokens.js'

export type PlanFile = Image & PixelSize

/** The plan in a form, as browsers can show it: the first page of a PDF document becomes an image. */
export const planIn = async (call: Call): Promise<PlanFile> => {
  const file = await fileIn(call)
  const bytes = Buffer.from(await file.arrayBuffer())
  const name = file.name.slice(0, 200)
  const beginning = bytes.toString('latin1', 0, 1024)
  if (/^(?:\xef\xbb\xbf)?\s*</.test(beginning)) return { mediaType: 'image/svg+xml', name, ...checkedSvg(bytes) }
  const plan = measuredImage(name, beginning.includes('%PDF-') ? await firstPage(bytes) : bytes)
  if (plan === null)
    throw new HttpError(
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      'Send a PNG, JPEG or WebP image, an SVG drawing, or a PDF document.'
    )
  return plan
}

const checkedSvg = (bytes: Buffer): ReturnType<typeof svgPlan> => {
  try {
    return svgPlan(bytes)
  } catch (error) {
    if (error instanceof SvgError) throw new HttpError(422, 'UNSAFE_SVG', error.message)
    throw error
  }
}
