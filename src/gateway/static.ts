import { stat } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from './errors.js'

const INDEX = 'index.html'

/**
 * Serves a built single-page app: its files, and its index for every other path that could be a page of it. Files are
 * looked for when they are asked for, so a deploy may replace them, or the whole folder where it is a symbolic link.
 * Links are followed wherever they lead: who may write into the folder decides what is published.
 */
export const webRoot = async (app: FastifyInstance, folder: string): Promise<void> => {
  const root = resolve(folder)
  await app.register(async (scope) => {
    await scope.register(fastifyStatic, {
      root,
      serve: false,
      // Which file it is, is decided here; the library only sends it.
      index: false,
      cacheControl: false,
      dotfiles: 'ignore',
      preCompressed: true
    })

    scope.route({
      method: ['GET', 'HEAD'],
      url: '/*',
      handler: async (request, reply) => {
        const file = await fileFor(request, root)
        return reply.header('cache-control', cacheControl(file)).sendFile(file)
      },
      errorHandler: (error, request, reply) => {
        forgetFile(reply)
        if (!isAboutFile(error)) return app.errorHandler(error, request, reply)
        reply
          .code(error.statusCode)
          .headers(error.headers ?? {})
          .header('cache-control', 'no-store')
          .send()
      }
    })
  })
}

// Paths of the gateway itself, whether or not anything answers there at the moment: never a file, never a page.
const RESERVED = /^\/(?:api|auth\/oidc|ble\/scan|ble\/status|dev-login|dev-user|metrics)(?:\/|$)/i

// `.env`, `.git`: in the folder by mistake.
const HIDDEN = /\/\./

/** The file that answers a request, relative to the folder. */
const fileFor = async (request: FastifyRequest, root: string): Promise<string> => {
  if (RESERVED.test(request.path) || HIDDEN.test(request.path)) throw new GatewayError('NOT_FOUND')
  if (request.path === '/') return INDEX
  // Has one reading, because the path has.
  const file = decodeURIComponent(request.path.slice(1))
  if (await isFile(join(root, file))) return file
  if (isPage(request)) return INDEX
  throw new GatewayError('NOT_FOUND')
}

// The path is too long for a file, leads through something that is no folder, or in a circle.
const NO_FILE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'])

const isFile = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    if (NO_FILE.has((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/**
 * Whether somebody wants to see a page there. A script or picture that is gone must not be answered with one: the browser
 * would try to run or show it. Who goes to an address says so; of others, who takes anything, a name with an extension is
 * taken for that of a file.
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

// What Vite names after its content: `assets/index-DiwrgTda.js`. Not words, numbers and sizes of eight characters, such as
// `logo-vertical.svg` or `hall-1280x720.png`: what is taken for a hash by mistake stays in browsers for a year.
const NAMED_BY_CONTENT =
  /^assets\/.*-(?!(?:[A-Za-z][a-z_-]{7}|[A-Z_-]{8}|\d+x?\d*)\.)[\w-]{8}\.[a-z0-9]+(?:\.map|\.br|\.gz)?$/

const cacheControl = (file: string): string =>
  NAMED_BY_CONTENT.test(file) ? 'public, max-age=31536000, immutable' : 'no-cache'

/** A range or condition that the file does not meet: the browser asked for it, and gets the bare answer. */
type FileError = FastifyError & { readonly statusCode: 412 | 416; readonly headers?: Record<string, string> }

const isAboutFile = (error: FastifyError): error is FileError => error.statusCode === 412 || error.statusCode === 416

const FILE_HEADERS = ['accept-ranges', 'content-encoding', 'content-length', 'content-type', 'etag', 'last-modified']

/** Where the file fails when it is read, its headers are on the answer already; they do not describe a refusal. */
const forgetFile = (reply: FastifyReply): void => {
  for (const name of FILE_HEADERS) {
    reply.removeHeader(name)
    reply.raw.removeHeader(name)
  }
}
