import type { FastifyInstance } from 'fastify'
import { oneRow, type Statements } from './database/database.js'
import { notFound, Refusal } from './errors.js'
import { type Call, FileAnswer } from './route.js'

interface Upload {
  readonly name: string
  readonly mediaType: string
  readonly bytes: Buffer
}

// By their first bytes, not by what the sender calls them. An SVG may hold scripts, so it is not among them.
const IMAGES: readonly (readonly [string, (bytes: Buffer) => boolean])[] = [
  ['image/png', (bytes) => bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex'))],
  ['image/jpeg', (bytes) => bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex'))],
  ['image/webp', (bytes) => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP']
]

/** Forms are kept as the bytes that they are; each route says how many it takes. */
export const acceptForms = (app: FastifyInstance): void => {
  app.addContentTypeParser('multipart/form-data', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
}

/** The image in a form. */
export const imageIn = ({ request }: Call): Upload => {
  const [, quoted, plain] = /boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(request.headers['content-type'] ?? '') ?? []
  const boundary = quoted ?? plain
  const part = boundary !== undefined && Buffer.isBuffer(request.body) ? filePart(request.body, boundary) : null
  if (part === null) throw new Refusal(400, 'NO_FILE', 'The form holds no file.')
  const [mediaType] = IMAGES.find(([, matches]) => matches(part.bytes)) ?? []
  if (mediaType === undefined) throw new Refusal(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send a PNG, JPEG or WebP image.')
  return { ...part, mediaType }
}

/** The first part of a form that has a file's name. */
const filePart = (body: Buffer, boundary: string): Omit<Upload, 'mediaType'> | null => {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  // The first delimiter has no line before it; with one, all are alike.
  const form = Buffer.concat([Buffer.from('\r\n'), body])
  let start = form.indexOf(delimiter)
  while (start !== -1) {
    const end = form.indexOf(delimiter, start + delimiter.length)
    if (end === -1) return null
    const part = form.subarray(start + delimiter.length + 2, end)
    const blank = part.indexOf('\r\n\r\n')
    const [, name] = /filename="([^"]*)"/i.exec(part.toString('utf8', 0, Math.max(blank, 0))) ?? []
    if (name !== undefined) return { name: name.slice(0, 200), bytes: part.subarray(blank + 4) }
    start = end
  }
  return null
}

export const storeFile = async (
  statements: Statements,
  owner: string,
  { name, mediaType, bytes }: Upload,
  now: Date
): Promise<void> => {
  await statements.rows(
    `INSERT INTO files (owner, media_type, name, bytes, updated_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (owner) DO UPDATE SET media_type = excluded.media_type, name = excluded.name, bytes = excluded.bytes,
       updated_at = excluded.updated_at`,
    [owner, mediaType, name, bytes, now]
  )
}

/** Null where there is none. */
export const storedFile = async (statements: Statements, owner: string): Promise<FileAnswer | null> => {
  const file = await oneRow<{ mediaType: string; bytes: Uint8Array }>(
    statements,
    'SELECT media_type AS "mediaType", bytes FROM files WHERE owner = $1',
    [owner]
  )
  return file && new FileAnswer(file.mediaType, Buffer.from(file.bytes))
}

export const removeFile = async (statements: Statements, owner: string, noun: string): Promise<void> => {
  const removed = await statements.rows('DELETE FROM files WHERE owner = $1 RETURNING owner', [owner])
  if (removed.length === 0) throw notFound(noun)
}
