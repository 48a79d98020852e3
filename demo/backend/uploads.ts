import type { FastifyInstance } from 'fastify'
import { HttpError, notFound } from './errors.js'
import { putRow } from './records.js'
import type { Resource } from './resources.js'
import { type Call, type CustomReply, fileReply, idOf, type Run } from './route.js'

/** An image with its size in pixels. */
interface Image {
  readonly mediaType: string
  readonly bytes: Buffer
  readonly width: number
  readonly height: number
}

const SVG = 'image/svg+xml'

type Size = Pick<Image, 'width' | 'height'>

/** The image in a file, detected by its bytes and not by the declared type; null if it is none. */
const imageIn = (bytes: Buffer): Image | null => {
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

/** The root element is near the start. */
const SVG_HEAD_BYTES = 4096

/** The content of an SVG drawing is not checked: as an image, and under the policy with which it is sent, it cannot run or load anything. */
const svgSize = (bytes: Buffer): Size | null => {
  const head = bytes.toString('utf8', 0, SVG_HEAD_BYTES)
  const [, attributes] = /^\uFEFF?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--[\s\S]*?-->\s*)*<svg(\s[^>]*)>/.exec(head) ?? []
  if (!attributes?.includes('"http://www.w3.org/2000/svg"')) return null
  const lengthOf = (name: string): number => Number(new RegExp(`\\s${name}="([\\d.]+)(?:px)?"`).exec(attributes)?.[1])
  const [, width, height] = /\sviewBox="[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+([\d.]+)"/.exec(attributes) ?? []
  return { width: lengthOf('width') || Number(width) || 0, height: lengthOf('height') || Number(height) || 0 }
}

/** An SVG drawing is shown as an image only: opened by itself it is saved, and it can load and run nothing. */
const SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

/** Forms are read as raw bytes; each route sets its limit. */
export const acceptForms = (app: FastifyInstance): void => {
  app.addContentTypeParser('multipart/form-data', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

/** The first file in a form. */
const fileIn = async ({ request }: Call): Promise<File> => {
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  // The parser of forms provides a buffer.
  const form = await new Response(request.body as Buffer, { headers }).formData().catch(() => new FormData())
  const file = [...form.values()].find((value) => typeof value !== 'string')
  if (file === undefined) throw new HttpError(400, 'NO_FILE', 'The form contains no file.')
  return file
}

/** A small file can contain a huge image, which would exhaust the memory of browsers. */
const MAX_PIXELS = 64_000_000

/** Stores the image in the form of an upload. */
export const storeImage = async (call: Call, { table }: Resource, accepted: 'photo' | 'plan'): Promise<Image> => {
  const file = await fileIn(call)
  const image = imageIn(Buffer.from(await file.arrayBuffer()))
  if (image === null || (accepted === 'photo' && image.mediaType === SVG)) {
    const kinds = accepted === 'photo' ? 'a PNG or JPEG image' : 'a PNG or JPEG image, or an SVG drawing with its size'
    throw new HttpError(415, 'UNSUPPORTED_MEDIA_TYPE', `Send ${kinds}.`)
  }
  const { mediaType, bytes, width, height } = image
  if (width * height > MAX_PIXELS)
    throw new HttpError(413, 'IMAGE_TOO_LARGE', `The image has more than ${MAX_PIXELS / 1_000_000} megapixels.`)
  const name = file.name.slice(0, 200)
  await putRow(
    call,
    'files',
    { owner: `${table}/${idOf(call)}`, mediaType, name, bytes, updatedAt: call.now() },
    'owner'
  )
  return image
}

/** Returns whether there was one. */
export const removeImage = async (call: Call, { table }: Resource): Promise<boolean> => {
  const sql = 'DELETE FROM files WHERE owner = $1 RETURNING owner'
  return (await call.database.rows(sql, [`${table}/${idOf(call)}`])).length > 0
}

/** Sends the image of a row. */
export const showImage =
  (noun: string, { table }: Resource): Run =>
  async (call) => {
    const sql = 'SELECT media_type, bytes FROM files WHERE owner = $1'
    const [file] = await call.database.rows<{ mediaType: string; bytes: Uint8Array }>(sql, [`${table}/${idOf(call)}`])
    if (file === undefined) throw notFound(noun)
    const bytes = Buffer.from(file.bytes)
    if (file.mediaType !== SVG) return fileReply(file.mediaType, bytes)
    const send = fileReply(SVG, bytes, `${noun}.svg`)
    const reply: CustomReply = (to) =>
      send(to.header('content-security-policy', SVG_POLICY).header('x-content-type-options', 'nosniff'))
    return reply
  }
