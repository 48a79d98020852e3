import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { ApiDispatcher } from '../api/dispatcher.js'
import type { RelayConfig } from '../config/config.js'
import { cachedPerConfig } from '../config/reload.js'
import type { Relay } from '../core/relay.js'
import type { Totals } from '../metrics/metrics.js'
import type { Rejections } from '../transport/rejections.js'
import { type HttpHandler, respond } from '../transport/respond.js'
import { AdminCall, forwardedHttps, guarded } from './guard.js'
import { LiveStreams } from './live.js'
import { servePage } from './page.js'
import { adminRoutes } from './routes.js'
import { SessionKeys, Sessions } from './sessions.js'
import { Attempts, signIn } from './sign-in.js'
import { SnapshotCollector } from './snapshots.js'
import { adminSurveyHandlers } from './surveys.js'

export interface AdminParts {
  readonly relay: Relay
  readonly dispatcher: ApiDispatcher
  readonly config: () => RelayConfig
  readonly configTimes: { readonly startedAt: number; reloadedAt: number | null }
  readonly addressOf: (request: IncomingMessage) => string
  readonly totals: () => Totals
  readonly rejections: Rejections
  /** What operators know this node by. */
  readonly nodeName: string
  /** Null where the engine is within the relay. */
  readonly isEngineConnected: () => boolean | null
  /** A call failed that should not. */
  readonly unexpectedError: () => void
  /** Where the built page is. */
  readonly pageFolder: string
  readonly log: Logger
}

export interface Admin {
  readonly handle: HttpHandler
  close(): void
}

/** The operators' page: `/admin` and all below it. Without a password there is no such path. */
export const buildAdmin = (parts: AdminParts): Admin => {
  const { relay, config, log } = parts
  const { cluster, node } = relay
  const { nowMs, monotonicMs } = relay.clocks
  const keys = cachedPerConfig(
    config,
    // Where nobody needs the key, each process has made one up.
    ({ adminPassword, api }) => new SessionKeys(adminPassword ?? '', api.insecure ? '' : api.key)
  )
  const isForwardedHttps = cachedPerConfig(config, ({ trustedProxies }) => forwardedHttps(trustedProxies))
  const attempts = new Attempts(monotonicMs)
  const sessions = new Sessions({ keys, nowMs, monotonicMs, tell: (news) => cluster.survey('adminSession', news) })
  const collector = new SnapshotCollector({ fleet: cluster, nowMs, log })
  const answers = adminSurveyHandlers({ ...parts, sessions, attempts, gatherer: collector })
  const streams = new LiveStreams(relay, sessions, collector)
  const page = servePage(parts.pageFolder)
  const enter = signIn({
    sessions,
    keys,
    password: () => config().adminPassword ?? '',
    attempts,
    isForwardedHttps: (request) => isForwardedHttps()(request),
    tell: (attempt) => void cluster.survey('adminAttempt', { node, attempt }),
    log
  })

  const table = adminRoutes({ ...parts, keys, sessions, streams, signIn: enter })
  const api = guarded(table, { sessions, keys })
  const handle: HttpHandler = (request, response, path) => {
    if (config().adminPassword === null) return notHere(request, response)
    const call = new AdminCall(request, response, parts.addressOf(request))
    const handled = path.startsWith('/admin/api/') ? api(call, path) : page(call, path)
    if (handled instanceof Promise) handled.catch((error) => failed(call, error))
  }

  const failed = (call: AdminCall, error: unknown): void => {
    parts.unexpectedError()
    log.error({ err: error }, 'call of the admin page failed')
    if (call.response.headersSent) call.response.destroy()
    else call.refuse(500, 'INTERNAL', 'The relay could not do it; its log says why.')
  }

  return {
    handle,
    close: () => {
      streams.close()
      collector.stop()
      answers.close()
    }
  }
}

const notHere = (request: IncomingMessage, response: ServerResponse): void => {
  request.resume()
  respond(response, 404)
}
