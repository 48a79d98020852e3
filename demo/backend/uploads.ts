import type { FastifyInstance } from 'fastify'
import { HttpError, notFound } from './errors.js'
import { type Image, imageIn, SVG } from './images.js'
import { getRecord, putRow } from './records.js'
import type { Resource } from './resources.js'
import { type Call, type CustomReply, fileReply, idOf, type Run } from './route.js'

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
    const kinds =
      accepted === 'photo' ? 'a PNG or JPEG image' : 'a PNG or JPEG image, or an SVG drawing without scripts and links'
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

/** Routes to upload and delete the photo of a row. */
export const photos = (resource: Resource): Readonly<Record<'store' | 'remove', Run>> => ({
  /** Returns the row that the photo belongs to. */
  store: async (call) => {
    await getRecord(call, resource, idOf(call))
    await storeImage(call, resource, 'photo')
    return getRecord(call, resource, idOf(call))
  },
  remove: async (call) => {
    if (!(await removeImage(call, resource))) throw notFound('photo')
  }
})
