import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { GATEWAY_OWNED_HEADERS } from '../security-header-table.js'
import { forwardedAuthorization } from '../session/credentials.js'

type Headers = Record<string, string | string[] | undefined>

// These belong to one connection, not to the message on it.
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings'
]

const NOT_TO_BACKEND: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'expect',
  // Credentials: the Bearer header below is the only one that the backend sees.
  'cookie',
  'authorization',
  'x-csrf-token',
  // Said by us, below, or by nobody.
  'x-request-id',
  'x-real-ip',
  'forwarded',
  // A backend that honours these would answer another request than the one that was checked.
  'x-original-url',
  'x-rewrite-url',
  'x-http-method',
  'x-http-method-override',
  'x-method-override'
])

const NOT_TO_BROWSER: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...GATEWAY_OWNED_HEADERS,
  // Sessions are the gateway's: a backend cannot set or clear them behind its back.
  'set-cookie',
  'clear-site-data',
  'x-request-id',
  'via',
  'alt-svc',
  'public-key-pins'
])

/** The headers that go to the backend, from those that the browser sent. */
export const backendRequestHeaders = (request: FastifyRequest, publicHost: string | null): Headers => {
  const { headers: incoming, method } = request.raw
  const perConnection = namesInConnection(incoming)
  // A read is forwarded without a body, so it must not announce one.
  const bodyless = method === 'GET' || method === 'HEAD'
  const headers: Headers = {}
  for (const name in incoming) {
    if (NOT_TO_BACKEND.has(name) || perConnection.includes(name) || isSpoofable(name)) continue
    if (bodyless && (name === 'content-length' || name === 'content-type')) continue
    headers[name] = incoming[name]
  }
  const authorization = forwardedAuthorization(request)
  if (authorization !== undefined) headers.authorization = authorization
  headers['x-forwarded-for'] = request.clientAddress
  headers['x-forwarded-proto'] = request.protocol
  headers['x-forwarded-host'] = publicHost ?? request.host
  headers['x-request-id'] = request.id
  return headers
}

/** Only proxies say these; and a backend that reads `_` as `-` would take `x_forwarded_for` for ours. */
const isSpoofable = (name: string): boolean => name.startsWith('x-forwarded-') || name.includes('_')

const NO_NAMES: readonly string[] = []

const namesInConnection = ({ connection }: IncomingHttpHeaders): readonly string[] =>
  connection === undefined || connection === 'keep-alive' || connection === 'close'
    ? NO_NAMES
    : connection.split(',').map((name) => name.trim().toLowerCase())

/** The headers that go to the browser, from those that the backend sent. */
export const browserResponseHeaders = (incoming: IncomingHttpHeaders, backendOrigin: string): Headers => {
  const perConnection = namesInConnection(incoming)
  const headers: Headers = {}
  for (const name in incoming) {
    if (NOT_TO_BROWSER.has(name) || perConnection.includes(name)) continue
    headers[name] = incoming[name]
  }
  // A redirect to the backend's own address would lead the browser past us.
  const { location } = incoming
  if (location?.startsWith(`${backendOrigin}/`)) headers.location = location.slice(backendOrigin.length)
  // Answers depend on who asks: unless the backend says how one may be kept, it may not.
  headers['cache-control'] ??= 'no-store'
  return headers
}
