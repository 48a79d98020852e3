import type { FastifyRequest } from 'fastify'
import { isRelayPath } from '../access.js'
import { cookieValues } from './cookies.js'

/** The content of the `auth_token` cookie. */
export type AppTokenCookie =
  | { readonly kind: 'absent' }
  | { readonly kind: 'token'; readonly token: string }
  /** The token, or the identity-provider session that it came from, was revoked. Its cookie or Bearer header is not forwarded. */
  | { readonly kind: 'revoked'; readonly token: string }
  /** It is not known yet whether the token was revoked. */
  | { readonly kind: 'unknown'; readonly token: string }
  /** Present, but cannot be forwarded: conflicting values or invalid characters. */
  | { readonly kind: 'unusable' }

const ABSENT: AppTokenCookie = { kind: 'absent' }
const UNUSABLE: AppTokenCookie = { kind: 'unusable' }

// The characters of a Bearer token. They exclude line breaks, which would allow header injection.
const TOKEN = /^[A-Za-z0-9._~+/=-]+$/
const BEARER = /^bearer +([A-Za-z0-9._~+/=-]+)$/i

// Clients that lost their token send these words instead.
const isPlaceholder = (token: string): boolean => /^(?:null|undefined)$/i.test(token)

const isNoToken = (value: string): boolean => value === '' || isPlaceholder(value)

/** Whether a token can be stored in the cookie and sent in a Bearer header. */
export const isUsableToken = (token: string): boolean => TOKEN.test(token) && !isPlaceholder(token)

/** Read once per request and cached, because several steps of the chain need it. */
export const appTokenCookie = (request: FastifyRequest): AppTokenCookie => {
  request.appTokenCookie ??= readAppTokenCookie(request)
  return request.appTokenCookie
}

const readAppTokenCookie = (request: FastifyRequest): AppTokenCookie => {
  const [value, conflicting] = cookieValues(request.headers.cookie, 'auth_token', isNoToken)
  if (value === undefined) return ABSENT
  if (conflicting !== undefined || !isUsableToken(value)) return UNUSABLE
  return { kind: 'token', token: value }
}

/**
 * The Authorization header for the backend: the cookie's token, or without a cookie the client's own Bearer header. An
 * unusable or revoked cookie does not fall back to the header.
 */
export const forwardedAuthorization = (request: FastifyRequest): string | undefined => {
  if (request.exchangedToken !== null) return `Bearer ${request.exchangedToken}`
  const cookie = appTokenCookie(request)
  if (cookie.kind === 'token') return `Bearer ${cookie.token}`
  if (cookie.kind !== 'absent') return undefined
  const token = bearerToken(request)
  return token === null ? undefined : `Bearer ${token}`
}

/** The token of the client's own Bearer header. */
export const bearerToken = ({ headers }: FastifyRequest): string | null => {
  const token = BEARER.exec(headers.authorization ?? '')?.[1]
  return token === undefined || isPlaceholder(token) ? null : token
}

/** Whether a request has no verified token, neither its own nor one that the session exchange obtained. */
export const isAnonymous = ({ auth, exchangedToken }: FastifyRequest): boolean =>
  auth === null && exchangedToken === null

/** Whether a response may depend on the user, because the request has a token or something in its place. */
export const hasCredentials = (request: FastifyRequest): boolean =>
  request.exchangedToken !== null ||
  request.providerToken !== null ||
  appTokenCookie(request).kind !== 'absent' ||
  request.headers.authorization !== undefined

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Decides for a request of this route whether it uses the session. By default every request does. */
    usesSession?: (request: FastifyRequest) => boolean
  }
}

/** Whether a request exchanges, extends and ends sessions. */
export const usesSession = (request: FastifyRequest): boolean =>
  // The relay has its own tokens, and a WebSocket has no response that could set the cookies.
  !isRelayPath(request.path) && request.routeOptions.config.usesSession?.(request) !== false
