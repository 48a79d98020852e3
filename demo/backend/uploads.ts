import type { FastifyInstance } from 'fastify'
import { HttpError, notFound } from './errors.js'
import { getRecord, putRow } from './records.js'
import type { Resource } from './resources.js'
import { type Call, fileReply, idOf, type Run } from './route.js'

// Detected by the first bytes (hexadecimal), not by the declared type. SVG is excluded, because it may contain scripts.
const IMAGES = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/webp', /^52494646.{8}57454250/]
] as const

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

/** Routes to show, upload and delete the image of a row. */
export const images = (noun: string, resource: Resource): Readonly<Record<'show' | 'store' | 'remove', Run>> => {
  const ownerOf = (call: Call): string => `${resource.table}/${idOf(call)}`
  return {
    show: async (call) => {
      const sql = 'SELECT media_type, bytes FROM files WHERE owner = $1'
      const [file] = await call.database.rows<{ mediaType: string; bytes: Uint8Array }>(sql, [ownerOf(call)])
      if (file === undefined) throw notFound(noun)
      return fileReply(file.mediaType, Buffer.from(file.bytes))
    },
    /** Returns the row that the image belongs to. */
    store: async (call) => {
      await getRecord(call, resource, idOf(call))
      const file = await fileIn(call)
      const bytes = Buffer.from(await file.arrayBuffer())
      const [mediaType] = IMAGES.find(([, beginning]) => beginning.test(bytes.toString('hex', 0, 12))) ?? []
      if (mediaType === undefined) throw new HttpError(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send a PNG, JPEG or WebP image.')
      const stored = { mediaType, name: file.name.slice(0, 200), bytes, updatedAt: call.now() }
      await putRow(call, 'files', { owner: ownerOf(call), ...stored }, 'owner')
      return getRecord(call, resource, idOf(call))
    },
    remove: async (call) => {
      const sql = 'DELETE FROM files WHERE owner = $1 RETURNING owner'
      const [gone] = await call.database.rows(sql, [ownerOf(call)])
      if (gone === undefined) throw notFound(noun)
    }
  }
}
