import type { FastifyRequest } from 'fastify'
import { cookieValues } from './cookies.js'

export type SessionCookie =
  | { readonly kind: 'absent' }
  | { readonly kind: 'token'; readonly token: string }
  /** There, but nothing that could be forwarded: two different values, control characters. */
  | { readonly kind: 'unusable' }

const ABSENT: SessionCookie = { kind: 'absent' }
const UNUSABLE: SessionCookie = { kind: 'unusable' }

// What may stand in a Bearer header, and so nothing that could end it and begin another.
const TOKEN = /^[A-Za-z0-9._~+/=-]+$/
const BEARER = /^bearer +([A-Za-z0-9._~+/=-]+)$/i

// A client that lost its token sends these words in its place.
const isPlaceholder = (token: string): boolean => /^(?:null|undefined)$/i.test(token)

const isNoToken = (value: string): boolean => value === '' || isPlaceholder(value)

/** Whether a text can stand for a session: in the cookie, and in the header that it becomes. */
export const isUsableToken = (token: string): boolean => TOKEN.test(token) && !isPlaceholder(token)

/** Asked by several steps, and the same for all of them. */
export const sessionCookie = (request: FastifyRequest): SessionCookie => {
  request.sessionCookie ??= readSessionCookie(request)
  return request.sessionCookie
}

const readSessionCookie = (request: FastifyRequest): SessionCookie => {
  const [value, another] = cookieValues(request.headers.cookie, 'auth_token', isNoToken)
  if (value === undefined) return ABSENT
  if (another !== undefined || !isUsableToken(value)) return UNUSABLE
  return { kind: 'token', token: value }
}

/**
 * The Authorization header that goes to the backend: the cookie's token, where there is no cookie the client's own Bearer
 * header, else none. A cookie that is there but unusable does not open the way for the header.
 */
export const forwardedAuthorization = (request: FastifyRequest): string | undefined => {
  if (request.exchangedToken !== null) return `Bearer ${request.exchangedToken}`
  const cookie = sessionCookie(request)
  if (cookie.kind === 'token') return `Bearer ${cookie.token}`
  if (cookie.kind === 'unusable') return undefined
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1]
  return token === undefined || isPlaceholder(token) ? undefined : `Bearer ${token}`
}
