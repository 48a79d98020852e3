import type { FastifyRequest } from 'fastify'
import { browserHost, browserProtocol } from '../request-context.js'
import { forwardedAuthorization } from '../session/app-session.js'
import { jsonMediaType } from './json-body.js'

// These belong to one connection, not to the message on it.
export const HOP_BY_HOP = [
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

const NO_NAMES: ReadonlySet<string> = new Set()

/** Headers that the `Connection` header names belong to the connection too. A set, because a client may name thousands. */
export const namesInConnection = (connection: string | undefined): ReadonlySet<string> =>
  connection === undefined || connection === 'keep-alive' || connection === 'close'
    ? NO_NAMES
    : new Set(connection.toLowerCase().split(',').map(trimmed))

const trimmed = (name: string): string => name.trim()

/** Only the gateway's own identity-provider exchange carries it. */
export const EXCHANGE_SECRET_HEADER = 'x-exchange-secret'

const NOT_TO_BACKEND: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'expect',
  // Credentials: the Bearer header below is the only one that the backend sees.
  'cookie',
  'authorization',
  'x-csrf-token',
  EXCHANGE_SECRET_HEADER,
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

/** What is said about the body that goes out. */
export type BodyAnnouncement =
  /** As it came: it is passed on as it comes. */
  | 'as sent'
  /** It was written anew, and so is what is said about it; its length is left to who sends it. */
  | 'json'
  /** There is none, so none may be announced. */
  | 'none'

/**
 * The headers that go to the backend, from those that the browser sent, as names and values by turns: undici takes an object
 * apart again, so that one would be made for nothing.
 */
export const backendRequestHeaders = (
  request: FastifyRequest,
  publicHost: string | null,
  body: BodyAnnouncement
): string[] => {
  const { headers: incoming } = request.raw
  const perConnection = namesInConnection(incoming.connection)
  const headers: string[] = []
  for (const name in incoming) {
    if (NOT_TO_BACKEND.has(name) || perConnection.has(name) || isSpoofable(name)) continue
    if (body !== 'as sent' && (name === 'content-length' || name === 'content-type')) continue
    const value = incoming[name]
    if (typeof value === 'string') headers.push(name, value)
    else for (const one of value ?? []) headers.push(name, one)
  }
  if (body === 'json') headers.push('content-type', jsonMediaType(incoming['content-type']))
  const authorization = forwardedAuthorization(request)
  if (authorization !== undefined) headers.push('authorization', authorization)
  headers.push(
    'x-forwarded-for',
    request.clientAddress,
    'x-forwarded-proto',
    browserProtocol(request),
    'x-forwarded-host',
    publicHost ?? browserHost(request),
    'x-request-id',
    request.id
  )
  return headers
}

/** Only proxies say these; and a backend that reads `_` as `-` would take `x_forwarded_for` for ours. */
const isSpoofable = (name: string): boolean => name.startsWith('x-forwarded-') || name.includes('_')
