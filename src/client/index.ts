// The public API of `gatehouse-client`. Everything else may change without notice.

export type { FieldError } from '../../schemas/field-errors.js'
export type { AmbientBatch, AmbientEntry, PositionBatch, PositionEntry } from '../../schemas/realtime.js'
export type { AuthUser } from '../../schemas/session.js'
export type { Id, Query } from './api/address.js'
export { type ApiOptions, createApi } from './api/api.js'
export { ApiError } from './api/api-error.js'
export { type ApiCaller, type CallerOptions, createCaller, type RequestOptions } from './api/caller.js'
export type { CallOptions, Download, UploadOptions } from './api/calls.js'
export type { ErrorCode, GatewayErrorCode } from './api/error-codes.js'
export type { Api } from './api/operations.js'
export type { Progress } from './api/upload.js'
export { type BackoffOptions, backoffMs } from './backoff.js'
export { type Client, type ClientOptions, createClient, createCustomClient } from './client.js'
export { type Clock, systemClock } from './clock.js'
export { authGuard, deviceGuard, guardVisit, permissionsGuard } from './guards/guards.js'
export { safeReturnPath } from './guards/return-path.js'
export {
  DEFAULT_GUARD_OPTIONS,
  type Decision,
  type Guard,
  type GuardOptions,
  type Layout,
  LOGIN_PAGE,
  OIDC_LOGIN_PATH,
  type PageMeta,
  type Viewport,
  type Visit
} from './guards/visit.js'
export type { Freshness, FreshnessChange } from './realtime/freshness.js'
export type { LiveMap, LiveMapOptions, MapChange, MapState } from './realtime/live-map.js'
export { Movement, type Point } from './realtime/movement.js'
export { type LivePosition, PositionStore, type PositionStoreOptions } from './realtime/position-store.js'
export { Realtime, type RealtimeOptions } from './realtime/realtime.js'
export type { RealtimeEvents, Refusal } from './realtime/realtime-events.js'
export { type ConnectionState, RpcError } from './realtime/relay-connection.js'
export { isInView, type View } from './realtime/view.js'
export { type ExpiryOptions, type ExpiryWatch, watchExpiry } from './session/expiry-watch.js'
export { Session, type SessionOptions } from './session/session.js'
export type { SessionState } from './session/session-state.js'
