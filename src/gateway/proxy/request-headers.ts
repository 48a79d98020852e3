import type { FastifyRequest } from 'fastify'
import type { AppClaims } from '../../shared/app-token.js'
import { HOP_BY_HOP } from '../../shared/hop-by-hop.js'
import type { Span } from '../../shared/tracing.js'
import { browserHost, browserProtocol } from '../http/client-request.js'
import { forwardedAuthorization } from '../session/credentials.js'
import type { IdentityHeaders } from '../session/identity-headers.js'
import { jsonMediaType } from './json-body.js'

const NO_NAMES: ReadonlySet<string> = new Set()

/** Headers listed in `Connection` are hop-by-hop too. A set, because a client may list thousands. */
export const connectionHeaderNames = (connection: string | undefined): ReadonlySet<string> =>
  connection === undefined || connection === 'keep-alive' || connection === 'close'
    ? NO_NAMES
    : new Set(
        connection
          .toLowerCase()
          .split(',')
          .map((name) => name.trim())
      )

/** Sent only with the gateway's own identity-provider exchange. */
export const EXCHANGE_SECRET_HEADER = 'x-exchange-secret'

const NOT_TO_BACKEND: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'expect',
  // Credentials. The backend receives only the bearer token that is added below.
  'cookie',
  'authorization',
  'x-csrf-token',
  EXCHANGE_SECRET_HEADER,
  // Set by the gateway, below, or not at all.
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
  // A backend that honours these would serve another request than the one that was checked.
  'x-original-url',
  'x-original-uri',
  'x-original-host',
  'x-rewrite-url',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  // CGI programs expose it as HTTP_PROXY, which some HTTP clients use as their proxy setting.
  'proxy'
])

/** The headers that tell a backend the user of a request. */
export interface ForwardedUser {
  /** The token in `Authorization`: the app token, the access token of the identity provider, or none. */
  readonly token: 'app' | 'provider' | 'none'
  /** Null if the backend receives no headers with the user. */
  readonly identity: IdentityHeaders | null
  /** The claims that those headers are made from; null without a verified token. */
  readonly claimsOf: (request: FastifyRequest) => AppClaims | null
}

/** For `BACKEND_URL`. */
const APP_TOKEN_ONLY: ForwardedUser = { token: 'app', identity: null, claimsOf: () => null }

const TRACE_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate'])

/** How the forwarded body relates to the one that was received; decides about the content headers. */
export type OutgoingBody =
  /** Forwarded unchanged, with the content headers of the client. */
  | 'as sent'
  /** Serialised again as JSON; undici sets the length. */
  | 'json'
  | 'none'

/**
 * The headers for the backend as alternating names and values, which undici accepts without a conversion. Trace headers are
 * those of the span, or those of the client if the request is not traced.
 */
export const backendRequestHeaders = (
  request: FastifyRequest,
  publicHost: string | null,
  body: OutgoingBody,
  span: Span | null,
  user: ForwardedUser = APP_TOKEN_ONLY
): string[] => {
  const { headers: incoming } = request.raw
  const connectionNames = connectionHeaderNames(incoming.connection)
  const headers: string[] = []
  for (const name in incoming) {
    if (NOT_TO_BACKEND.has(name) || connectionNames.has(name) || isSpoofable(name)) continue
    if (user.identity?.includes(name)) continue
    if (span !== null && TRACE_HEADERS.has(name)) continue
    if (body !== 'as sent' && (name === 'content-length' || name === 'content-type')) continue
    const value = incoming[name]
    if (typeof value === 'string') headers.push(name, value)
    else for (const item of value ?? []) headers.push(name, item)
  }
  if (body === 'json') headers.push('content-type', jsonMediaType(incoming['content-type']))
  addUser(headers, request, user)
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
  if (span !== null) headers.push(...span.headers)
  return headers
}

const addUser = (headers: string[], request: FastifyRequest, { token, identity, claimsOf }: ForwardedUser): void => {
  const authorization = authorizationOf(request, token)
  if (authorization !== undefined) headers.push('authorization', authorization)
  const claims = identity === null ? null : claimsOf(request)
  if (identity !== null && claims !== null) headers.push(...identity.of(claims))
}

const authorizationOf = (request: FastifyRequest, token: ForwardedUser['token']): string | undefined => {
  if (token === 'app') return forwardedAuthorization(request)
  return token === 'provider' && request.providerToken !== null ? `Bearer ${request.providerToken}` : undefined
}

/** Only proxies set `x-forwarded-*`. A backend that reads `_` as `-` would accept `x_forwarded_for` as ours. */
const isSpoofable = (name: string): boolean => name.startsWith('x-forwarded-') || name.includes('_')
