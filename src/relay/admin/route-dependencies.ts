import type { AdminSurveys } from './admin-surveys.js'
import type { AdminDependencies } from './dependencies.js'
import type { AdminCall } from './guard.js'
import type { LiveStreams } from './live.js'
import type { SessionKeys, Sessions } from './sessions.js'

/** Everything that the routes of the operators' page use. */
export interface RouteDependencies extends AdminDependencies {
  readonly surveys: AdminSurveys
  readonly keys: () => SessionKeys
  readonly sessions: Sessions
  readonly streams: LiveStreams
  readonly signIn: (call: AdminCall) => Promise<void>
}
