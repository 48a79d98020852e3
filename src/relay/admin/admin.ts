import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { RelayConfig } from '../config.js'
import type { Relay } from '../core/relay.js'
import type { ApiCalls } from '../edge/api-calls.js'
import { answer } from '../edge/http-answer.js'
import type { HttpRoute } from '../edge/http-stream.js'
import type { Totals } from '../edge/metrics.js'
import type { Troubles } from '../edge/troubles.js'
import { latest } from '../latest.js'
import { Attempts } from './attempts.js'
import { AdminCall } from './call.js'
import { forwardedHttps } from './forwarded-https.js'
import { Gatherer } from './gatherer.js'
import { guarded } from './guard.js'
import { LiveStreams } from './live.js'
import { adminAnswers } from './node-answers.js'
import { servePage } from './page.js'
import { adminRoutes } from './routes.js'
import { SessionKeys } from './session-keys.js'
import { Sessions } from './sessions.js'
import { signIn } from './sign-in.js'

export interface AdminParts {
  readonly relay: Relay
  readonly config: () => RelayConfig
  readonly configTimes: { readonly startedAt: number; reloadedAt: number | null }
  readonly addressOf: (request: IncomingMessage) => string
  readonly totals: () => Totals
  readonly troubles: Troubles
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
  route(calls: ApiCalls): HttpRoute
  close(): void
}

/** The operators' page: `/admin` and all below it. Without a password there is no such path. */
export const buildAdmin = (parts: AdminParts): Admin => {
  const { relay, config, log } = parts
  const { fleet, nowMs, monotonicMs, node } = relay.context
  const keys = latest(
    config,
    // Where nobody needs the key, each process has made one up.
    ({ adminPassword, api }) => new SessionKeys(adminPassword ?? '', api.insecure ? '' : api.key)
  )
  const isForwardedHttps = latest(config, ({ trustedProxies }) => forwardedHttps(trustedProxies))
  const attempts = new Attempts(monotonicMs)
  const sessions = new Sessions({ keys, nowMs, monotonicMs, tell: (news) => fleet.ask('adminSession', news) })
  const gatherer = new Gatherer({ fleet, nowMs, log })
  const answers = adminAnswers({ ...parts, sessions, attempts, gatherer })
  const streams = new LiveStreams(relay.context, sessions, gatherer)
  const page = servePage(parts.pageFolder)
  const enter = signIn({
    sessions,
    keys,
    password: () => config().adminPassword ?? '',
    attempts,
    isForwardedHttps: (request) => isForwardedHttps()(request),
    tell: (attempt) => void fleet.ask('adminAttempt', { node, attempt }),
    log
  })

  const route = (calls: ApiCalls): HttpRoute => {
    const table = adminRoutes({ ...parts, calls, keys, sessions, streams, signIn: enter })
    const api = guarded(table, { sessions, keys })
    return (request, response) => {
      if (config().adminPassword === null) return notHere(request, response)
      const { url = '' } = request
      const [path = ''] = url.split('?', 1)
      const call = new AdminCall(request, response, parts.addressOf(request))
      const handled = path.startsWith('/admin/api/') ? api(call, path) : page(call, path)
      if (handled instanceof Promise) handled.catch((error) => failed(call, error))
    }
  }

  const failed = (call: AdminCall, error: unknown): void => {
    parts.unexpectedError()
    log.error({ err: error }, 'call of the admin page failed')
    if (call.response.headersSent) call.response.destroy()
    else call.refuse(500, 'INTERNAL', 'The relay could not do it; its log says why.')
  }

  return {
    route,
    close: () => {
      streams.close()
      gatherer.stop()
      answers.close()
    }
  }
}

const notHere = (request: IncomingMessage, response: ServerResponse): void => {
  request.resume()
  answer(response, 404)
}
