// The public API of `gatehouse-client`. Everything else may change without notice.

export type { FieldError } from '../../schemas/field-errors.js'
export type { AuthUser } from '../../schemas/session.js'
export type { Id, Query } from './api/address.js'
export { ApiError } from './api/api-error.js'
export {
  type ApiCaller,
  type CallerOptions,
  type CallOptions,
  createCaller,
  type RequestOptions
} from './api/caller.js'
export type { ErrorCode, GatewayErrorCode } from './api/error-codes.js'
export type { Progress } from './api/upload.js'
export { type ApiClient, type ApiClientOptions, createApiClient } from './api-client.js'
export { type BackoffOptions, backoffMs } from './backoff.js'
export { type AnyClient, type Client, type ClientOptions, createClient } from './client.js'
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
export {
  type ChannelData,
  type ChannelSchemas,
  type Channels,
  type ChannelsOptions,
  type DataOf,
  type Declared,
  defineChannels,
  type NoChannels,
  type StandardSchema,
  type TypeOnly,
  typeOnly
} from './realtime/channels.js'
export type { LiveMap, LiveMapOptions, MapChange, MapState } from './realtime/live-map.js'
export { type AnyRealtime, Realtime, type RealtimeOptions } from './realtime/realtime.js'
export type { RealtimeEvents, Refusal } from './realtime/realtime-events.js'
export type { ConnectionState, MapType } from './realtime/relay-connection.js'
export { CLIENT_CODES, RelayError } from './realtime/relay-error.js'
export type { Subscription } from './realtime/subscription.js'
export type {
  ClientInfo,
  FilterNode,
  History,
  HistoryOptions,
  Publication,
  StreamPosition,
  SubscribeOptions,
  SubscriptionEvents,
  SubscriptionState
} from './realtime/subscription-events.js'
export type { View } from './realtime/view.js'
export { type ExpiryOptions, type ExpiryWatch, watchExpiry } from './session/expiry-watch.js'
export { Session, type SessionOptions } from './session/session.js'
export type { SessionState } from './session/session-state.js'
