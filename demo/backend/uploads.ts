import type { FastifyInstance } from 'fastify'
import { imageSize } from 'image-size'
import { changedRecord } from './crud.js'
import { HttpError, notFound } from './errors.js'
import type { PixelSize } from './png.js'
import { getRecord, putRow } from './records.js'
import type { Resource } from './resources.js'
import { type Call, type CustomReply, fileReply, idOf, type Run } from './route.js'

// Detected by the first bytes (hexadecimal), not by the declared type.
const IMAGES = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/webp', /^52494646.{8}57454250/]
] as const

const SVG = 'image/svg+xml'
const SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

/** Forms are read as raw bytes; each route sets its limit. */
export const acceptForms = (app: FastifyInstance): void => {
  app.addContentTypeParser('multipart/form-data', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

/** The first file in a form. */
export const fileIn = async ({ request }: Call): Promise<File> => {
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  // The parser of forms provides a buffer.
  const form = await new Response(request.body as Buffer, { headers }).formData().catch(() => new FormData())
  const file = [...form.values()].find((value) => typeof value !== 'string')
  if (file === undefined) throw new HttpError(400, 'NO_FILE', 'The form contains no file.')
  return file
}

export interface Image {
  readonly mediaType: string
  readonly name: string
  readonly bytes: Buffer
}

/** A small file can contain a huge image, which would exhaust the memory of browsers. */
const MAX_PIXELS = 64_000_000
/** Images have their size near the beginning. A file of empty JPEG segments would be searched for seconds. */
const MAX_HEADER_BYTES = 512 * 1024

/** The image of pixels with its size as it is shown; null if the bytes are none. Throws for one that is too large. */
export const measuredImage = (name: string, bytes: Buffer): (Image & PixelSize) | null => {
  const [mediaType] = IMAGES.find(([, beginning]) => beginning.test(bytes.toString('hex', 0, 12))) ?? []
  const size = mediaType === undefined ? null : sizeOf(bytes)
  if (mediaType === undefined || size === null) return null
  const { width, height, orientation = 1 } = size
  if (!(width > 0 && height > 0)) return null
  if (width * height > MAX_PIXELS)
    throw new HttpError(413, 'IMAGE_TOO_LARGE', `The image has more than ${MAX_PIXELS / 1_000_000} megapixels.`)
  // Photos that were taken upright are stored rotated.
  const shown = orientation >= 5 ? { width: height, height: width } : { width, height }
  return { mediaType, name, bytes, ...shown }
}

const sizeOf = (bytes: Uint8Array): ReturnType<typeof imageSize> | null => {
  try {
    return imageSize(bytes.subarray(0, MAX_HEADER_BYTES))
  } catch {
    return null
  }
}

/** The image in a form. */
const imageIn = async (call: Call): Promise<Image> => {
  const file = await fileIn(call)
  const image = measuredImage(file.name.slice(0, 200), Buffer.from(await file.arrayBuffer()))
  if (image === null) throw new HttpError(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send a PNG, JPEG or WebP image.')
  const { mediaType, name, bytes } = image
  return { mediaType, name, bytes }
}

/** Where the image of a row is stored. */
const ownerOf = ({ table }: Resource, call: Call): string => `${table}/${idOf(call)}`

export const storeImage = (call: Call, resource: Resource, image: Image): Promise<void> =>
  putRow(call, 'files', { owner: ownerOf(resource, call), ...image, updatedAt: call.now() }, 'owner')

/** Returns whether there was one. */
export const removeImage = async (call: Call, resource: Resource): Promise<boolean> => {
  const sql = 'DELETE FROM files WHERE owner = $1 RETURNING owner'
  return (await call.database.rows(sql, [ownerOf(resource, call)])).length > 0
}

/** Routes to show, upload and delete the image of a row. */
export const images = (noun: string, resource: Resource): Readonly<Record<'show' | 'store' | 'remove', Run>> => ({
  show: async (call) => {
    const sql = 'SELECT media_type, bytes FROM files WHERE owner = $1'
    const [file] = await call.database.rows<{ mediaType: string; bytes: Uint8Array }>(sql, [ownerOf(resource, call)])
    if (file === undefined) throw notFound(noun)
    const { mediaType, bytes } = file
    if (mediaType !== SVG) return fileReply(mediaType, Buffer.from(bytes))
    // An SVG drawing is shown as an image only: opened by itself it is saved, and it can load and run nothing.
    const send = fileReply(mediaType, Buffer.from(bytes), 'plan.svg')
    const reply: CustomReply = (to) => send(to.header('content-security-policy', SVG_POLICY))
    return reply
  },
  /** Returns the row that the image belongs to. */
  store: async (call) => {
    await getRecord(call, resource, idOf(call))
    await storeImage(call, resource, await imageIn(call))
    return changedRecord(call, resource, idOf(call))
  },
  remove: async (call) => {
    if (!(await removeImage(call, resource))) throw notFound(noun)
    await changedRecord(call, resource, idOf(call))
  }
})
