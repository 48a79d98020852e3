import { cachedPerConfig } from '../config/reload.js'
import { type BackgroundDependencies, runInBackground } from '../core/session/context.js'
import { type HttpHandler, respond } from '../transport/respond.js'
import { addSurveyHandlers } from './admin-survey-handlers.js'
import { adminSurveys } from './admin-surveys.js'
import { FigureCollector } from './collector.js'
import type { AdminDependencies } from './dependencies.js'
import { FigureHistory } from './figure-history.js'
import { AdminCall, forwardedHttps, guarded } from './guard.js'
import { LiveStreams } from './live.js'
import { servePage } from './page.js'
import { adminRoutes } from './routes.js'
import { SessionKeys, Sessions } from './sessions.js'
import { SignInLimiter, signIn } from './sign-in.js'

export interface Admin {
  readonly handle: HttpHandler
  close(): void
}

/** The operators' page: `/admin` and everything below it. Without a password these paths do not exist. */
export const buildAdmin = (dependencies: AdminDependencies): Admin => {
  const { relay, config, expectedTraffic, log } = dependencies
  const { nowMs, monotonicMs } = relay.clocks
  const surveys = adminSurveys(relay)
  const background: BackgroundDependencies = { log, metrics: { unexpectedError: dependencies.unexpectedError } }
  const keys = cachedPerConfig(
    config,
    // With `insecure` the API key is random in every process and cannot be used as a shared secret.
    ({ adminPassword, api }) => new SessionKeys(adminPassword ?? '', api.insecure ? '' : api.key)
  )
  const isForwardedHttps = cachedPerConfig(config, ({ trustedProxies }) => forwardedHttps(trustedProxies))
  const limiter = new SignInLimiter(monotonicMs)
  const sessions = new Sessions({
    keys,
    nowMs,
    monotonicMs,
    announce: (update) => surveys.survey('adminSession', update),
    background
  })
  const isEnabled = (): boolean => config().adminPassword !== null
  const history = new FigureHistory({ surveys, isEnabled, nowMs, log })
  const collector = new FigureCollector({ surveys, history, expectedTraffic, nowMs, log })
  const streams = new LiveStreams(relay, sessions, collector)
  const surveyHandlers = addSurveyHandlers(surveys, { ...dependencies, sessions, limiter, history })
  history.start()

  const page = servePage(dependencies.pageFolder)
  const routes = adminRoutes({
    ...dependencies,
    surveys,
    keys,
    sessions,
    streams,
    signIn: signIn({
      sessions,
      keys,
      password: () => config().adminPassword ?? '',
      limiter,
      isForwardedHttps: (request) => isForwardedHttps()(request),
      announce: (attempt) =>
        runInBackground(background, () => surveys.survey('adminAttempt', { node: relay.node, attempt })),
      log
    })
  })
  const api = guarded(routes, { sessions, keys })

  return {
    handle: (request, response, path) => {
      if (!isEnabled()) {
        request.resume()
        respond(response, 404)
        return
      }
      const call = new AdminCall(request, response, dependencies.addressOf(request))
      const handled = path.startsWith('/admin/api/') ? api(call, path) : page(call, path)
      if (handled instanceof Promise) handled.catch((error) => fail(call, error, dependencies))
    },
    close: () => {
      streams.close()
      collector.stop()
      history.stop()
      surveyHandlers.close()
    }
  }
}

const fail = (
  call: AdminCall,
  error: unknown,
  { log, unexpectedError }: Pick<AdminDependencies, 'log' | 'unexpectedError'>
): void => {
  unexpectedError()
  log.error({ err: error }, 'admin request failed')
  if (call.response.headersSent) call.response.destroy()
  else call.reject(500, 'INTERNAL', 'Internal error. See the log of the relay.')
}
