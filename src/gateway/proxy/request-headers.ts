import type { FastifyRequest } from 'fastify'
import { READING_METHODS } from '../access.js'
import { forwardedAuthorization } from '../session/credentials.js'
import { HOP_BY_HOP, namesInConnection } from './hop-by-hop.js'

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
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'forwarded',
  'x-forwarded',
  'x-host',
  'x-url-scheme',
  'front-end-https',
  'via',
  // A backend that honours these would answer another request than the one that was checked.
  'x-original-url',
  'x-original-uri',
  'x-original-host',
  'x-rewrite-url',
  // Some programs take this for the setting of the same name, and send what they ask for to whoever said it.
  'proxy',
  'x-http-method',
  'x-http-method-override',
  'x-method-override'
])

export type RequestHeaders = Record<string, string | string[] | undefined>

/** The headers that go to the backend, from those that the browser sent. */
export const backendRequestHeaders = (request: FastifyRequest, publicHost: string | null): RequestHeaders => {
  const { headers: incoming, method } = request.raw
  const perConnection = namesInConnection(incoming.connection)
  // A read is forwarded without a body, so it must not announce one.
  const bodyless = READING_METHODS.has(method ?? '')
  const headers: RequestHeaders = {}
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
