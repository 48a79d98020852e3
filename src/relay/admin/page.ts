import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Headers, respond, TEXT_TYPE } from '../transport/respond.js'
import { type AdminCall, NO_STORE, SECURITY_HEADERS } from './guard.js'

interface PageFile {
  readonly bytes: Buffer
  /** Null if compression does not make it smaller. */
  readonly gzipped: Buffer | null
  readonly headers: Headers
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml'
}
/** The names of built assets contain a hash of their content. */
const IMMUTABLE: Headers = ['Cache-Control', 'public, max-age=31536000, immutable']

const compress = promisify(gzip)

/**
 * Reads the files of the built page, by URL path. Other paths do not exist, which excludes path traversal. Empty if the page
 * was not built.
 */
const readPageFiles = async (folder: string): Promise<ReadonlyMap<string, PageFile>> => {
  const files = new Map<string, PageFile>()
  for (const name of await filesIn(folder)) {
    const bytes = await readFile(join(folder, name))
    const small = await compress(bytes)
    const caching = name.startsWith('assets/') ? IMMUTABLE : NO_STORE
    files.set(name === 'index.html' ? '/admin' : `/admin/${name}`, {
      bytes,
      gzipped: small.length < bytes.length ? small : null,
      headers: ['Content-Type', TYPES[extname(name)] ?? 'application/octet-stream', ...caching]
    })
  }
  return files
}

const filesIn = async (folder: string): Promise<readonly string[]> => {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(folder, join(parentPath, name)).replaceAll(sep, '/'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

const NOT_BUILT = "The operators' page was not built. Run `npm run build`.\n"

/** Serves the built page without a session: its data comes from the API. The files are read on the first request. */
export const servePage = (folder: string) => {
  let reading: ReturnType<typeof readPageFiles> | null = null
  const files = (): ReturnType<typeof readPageFiles> => {
    reading ??= readPageFiles(folder).catch((error: unknown) => {
      // The cause may be temporary, such as too many open files.
      reading = null
      throw error
    })
    return reading
  }

  return async (call: AdminCall, path: string): Promise<void> => {
    const { request, response } = call
    const isIndex = path === '/admin' || path === '/admin/'
    const found = (await files()).get(isIndex ? '/admin' : path)
    if (found === undefined && !isIndex) return call.reject(404, 'NOT_FOUND', 'Not found.')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return call.reject(405, 'METHOD_NOT_ALLOWED', 'Only GET is allowed.', ['Allow', 'GET, HEAD'])
    }
    request.resume()
    if (found === undefined) return respond(response, 503, NOT_BUILT, [...TEXT_TYPE, ...call.headers])
    const { bytes, gzipped, headers } = found
    const isCompressed = gzipped !== null && acceptsGzip(request.headers['accept-encoding'])
    const body = isCompressed ? gzipped : bytes
    response.writeHead(200, [
      ...headers,
      ...SECURITY_HEADERS,
      ...['Content-Length', String(body.length), 'Vary', 'Accept-Encoding'],
      ...(isCompressed ? ['Content-Encoding', 'gzip'] : [])
    ])
    response.end(request.method === 'HEAD' ? undefined : body)
  }
}

const acceptsGzip = (accepted: string | string[] | undefined): boolean =>
  /(?:^|,) *gzip *(?:,|;(?! *q=0(?:\.0*)? *(?:,|$))|$)/.test(String(accepted ?? ''))
