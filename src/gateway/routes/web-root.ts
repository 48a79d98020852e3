import { stat } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorCode } from '../../shared/error-code.js'
import { GatewayError } from '../errors.js'
import { VERIFY_PATH } from './forward-auth.js'

const INDEX = 'index.html'

/**
 * Serves a built web application (SPA): its files, and its index for every other path that could be one of its pages. Files are
 * looked up for each request, so a deployment may replace them, or the folder itself if it is a symbolic link. Symbolic
 * links are followed: write access to the folder is permission to publish.
 */
export const webRoot = async (app: FastifyInstance, folder: string): Promise<void> => {
  const root = resolve(folder)
  await app.register(async (scope) => {
    await scope.register(fastifyStatic, {
      root,
      serve: false,
      // The handler below chooses the file.
      index: false,
      cacheControl: false,
      dotfiles: 'ignore',
      preCompressed: true
    })

    scope.route({
      method: ['GET', 'HEAD'],
      url: '/*',
      config: { usesSession: isNavigation },
      handler: async (request, reply) => {
        const file = await fileFor(request, root)
        return reply.header('cache-control', cacheControl(file)).sendFile(file)
      },
      errorHandler: (error, request, reply) => {
        removeFileHeaders(reply)
        if (!isFileError(error)) return app.errorHandler(error, request, reply)
        reply
          .code(error.statusCode)
          .headers(error.headers ?? {})
          .header('cache-control', 'no-store')
          .send()
      }
    })
  })
}

// Paths of the gateway itself are never a file or a page, whether they have a route or not.
const RESERVED = /^\/(?:api|auth\/oidc|ble\/scan|ble\/status|dev-login|dev-user|metrics)(?:\/|$)/i

/**
 * Whether a proxy asks about a request (`forward-auth.ts`) although that is not enabled. It would take a page for permission.
 * Browsers may open a page of the app with this path.
 */
const isProxyCheck = ({ path, headers }: FastifyRequest): boolean =>
  path === VERIFY_PATH && PROXY_HEADERS.some((name) => headers[name] !== undefined)

const PROXY_HEADERS = ['x-forwarded-uri', 'x-forwarded-method', 'x-original-uri', 'x-original-url', 'x-original-method']

// Such as `.env` and `.git`, which are there by mistake.
const HIDDEN = /\/\./

/** The file for a request, relative to the folder. */
const fileFor = async (request: FastifyRequest, root: string): Promise<string> => {
  if (RESERVED.test(request.path) || HIDDEN.test(request.path) || isProxyCheck(request))
    throw new GatewayError('NOT_FOUND')
  if (request.path === '/') return INDEX
  // Cannot throw: the path is canonical.
  const file = decodeURIComponent(request.path.slice(1))
  if (await isFile(join(root, file))) return file
  if (isPage(request)) return INDEX
  throw new GatewayError('NOT_FOUND')
}

// The path is too long, leads through a file, or is a loop of links.
const NO_FILE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'])

const isFile = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    if (NO_FILE.has(errorCode(error))) return false
    throw error
  }
}

/**
 * Whether a browser opens a page, which then starts with the session. Files are the same for all users and may be cached
 * by shared caches, so they must not set cookies.
 */
const isNavigation = ({ method, path, headers }: FastifyRequest): boolean =>
  method === 'GET' &&
  extname(path) === '' &&
  (headers['sec-fetch-mode'] === 'navigate' || accepts(headers.accept, HTML))

/**
 * Whether the client requests a page. A missing script or image must not be replaced by the index page: the browser would
 * try to run or show it. Browsers mark navigations; for clients that accept anything, a name with an extension is a file.
 */
const isPage = ({ path, headers }: FastifyRequest): boolean =>
  headers['sec-fetch-mode'] === 'navigate' ||
  accepts(headers.accept, HTML) ||
  (extname(path) === '' && (headers.accept === undefined || accepts(headers.accept, ANYTHING)))

const HTML: ReadonlySet<string> = new Set(['text/html'])
const ANYTHING: ReadonlySet<string> = new Set(['text/*', '*/*'])

const accepts = (accept: string | undefined, types: ReadonlySet<string>): boolean =>
  accept?.split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    return types.has(type) && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  }) ?? false

// Names with a content hash of Vite: `assets/index-DiwrgTda.js`. Not words, numbers and sizes of eight characters, such as
// `logo-vertical.svg` or `hall-1280x720.png`, because browsers keep such files for a year.
const NAMED_BY_CONTENT =
  /^assets\/.*-(?!(?:[A-Za-z][a-z_-]{7}|[A-Z_-]{8}|\d+x?\d*)\.)[\w-]{8}\.[a-z0-9]+(?:\.map|\.br|\.gz)?$/

const cacheControl = (file: string): string =>
  NAMED_BY_CONTENT.test(file) ? 'public, max-age=31536000, immutable' : 'no-cache'

/** A range or condition that the file does not meet. Its response has no body. */
type FileError = FastifyError & { readonly statusCode: 412 | 416; readonly headers?: Record<string, string> }

const isFileError = (error: FastifyError): error is FileError => error.statusCode === 412 || error.statusCode === 416

const FILE_HEADERS = ['accept-ranges', 'content-encoding', 'content-length', 'content-type', 'etag', 'last-modified']

/** If reading the file fails, its headers are set already; they do not describe the error response. */
const removeFileHeaders = (reply: FastifyReply): void => {
  for (const name of FILE_HEADERS) {
    reply.removeHeader(name)
    reply.raw.removeHeader(name)
  }
}
