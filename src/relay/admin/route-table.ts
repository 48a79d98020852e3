import type { AdminCall } from './call.js'
import type { SessionClaims } from './session-keys.js'

/** Needs no session. */
interface OpenRow {
  readonly method: 'GET' | 'POST'
  readonly access: 'everybody'
  handle(call: AdminCall): void | Promise<void>
}

interface SessionRow {
  readonly method: 'GET' | 'POST'
  readonly access: 'session'
  handle(call: AdminCall, session: SessionClaims): void | Promise<void>
}

/** All of the API by path, each with the one method that it has. */
export type RouteTable = Readonly<Record<string, OpenRow | SessionRow>>
