import type { FastifyRequest } from 'fastify'
import type { Description } from '../../openapi/description.js'
import { isWebSocketHandshake } from '../../shared/http-upgrade.js'
import { type AccessRules, isApiPath } from '../access.js'
import type { KnownPaths } from '../http/known-paths.js'
import type { Backend } from '../proxy/backend-pool.js'
import type { ForwardedUser } from '../proxy/request-headers.js'
import type { Selectable } from './upstream-selector.js'

/** A row of `GATEWAY_UPSTREAMS`: a backend of its own for some paths, and the rules for them. */
export interface Upstream extends Selectable {
  readonly name: string
  readonly backend: Backend
  readonly user: ForwardedUser
  readonly access: AccessRules
  readonly knownPaths: KnownPaths
  /** Whether WebSockets are passed on to the backend. */
  readonly websocket: boolean
  /** The largest number of them; null for the default. */
  readonly maxWebSockets: number | null
  /** The description in the OpenAPI document of the row; null if the row has none. */
  readonly description: Description | null
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The row that the request belongs to; null for `BACKEND_URL` and the gateway's own paths. */
    upstream: Upstream | null
  }
}

/** Whether a request is for a backend, or for a path of the gateway itself under `/api/`. */
export const isForBackend = ({ upstream, path }: FastifyRequest): boolean => upstream !== null || isApiPath(path)

/** Whether a request is the handshake of a WebSocket to the backend of its row. */
export const isWebSocketRequest = ({ upstream, raw }: FastifyRequest): boolean =>
  upstream?.websocket === true && isWebSocketHandshake(raw)
