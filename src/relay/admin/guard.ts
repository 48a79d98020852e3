import { sameSecret } from '../../shared/same-secret.js'
import type { AdminCall } from './call.js'
import { CLEAR_SESSION_COOKIE, sessionCookie, setSessionCookie } from './cookies.js'
import type { RouteTable } from './route-table.js'
import { isFromOwnPage } from './same-origin.js'
import type { SessionKeys } from './session-keys.js'
import type { Sessions } from './sessions.js'

export interface GuardParts {
  readonly sessions: Sessions
  readonly keys: () => SessionKeys
}

/** Every call of the API goes through here, in this order: method, page, session, token. */
export const guarded =
  (table: RouteTable, { sessions, keys }: GuardParts) =>
  (call: AdminCall, path: string): void | Promise<void> => {
    const { request } = call
    const row = Object.hasOwn(table, path) ? table[path] : undefined
    if (row === undefined) return call.refuse(404, 'NOT_FOUND', 'There is nothing here.')
    if (request.method !== row.method) {
      return call.refuse(405, 'METHOD_NOT_ALLOWED', `Only ${row.method} is possible here.`, ['Allow', row.method])
    }
    if (!isFromOwnPage(request)) return call.refuse(403, 'FOREIGN_PAGE', 'The request comes from another page.')
    if (row.access === 'everybody') return row.handle(call)

    const cookie = sessionCookie(request)
    const session = cookie === null ? null : sessions.read(cookie)
    if (session === null) {
      if (cookie !== null) call.cookie = CLEAR_SESSION_COOKIE
      return call.refuse(401, 'NOT_SIGNED_IN', 'Sign in first.')
    }
    const token = request.headers['x-admin-csrf']
    const hasToken = typeof token === 'string' && sameSecret(token, keys().csrfToken(session.id))
    if (row.method !== 'GET' && !hasToken) return call.refuse(403, 'CSRF_MISMATCH', 'X-Admin-CSRF is missing or wrong.')

    const isByHand = request.headers['x-admin-refresh'] === undefined && !isStream(request.headers.accept)
    const renewed = isByHand ? sessions.touch(session) : null
    if (renewed !== null) call.cookie = setSessionCookie(keys().sign(renewed), renewed.isSecure)
    return row.handle(call, session)
  }

/** It is opened again by itself whenever it breaks off. */
const isStream = (accept: string | undefined): boolean => accept?.includes('text/event-stream') ?? false
