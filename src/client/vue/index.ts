// The public API of `gatehouse-client/vue`. Guards for Vue Router are in `gatehouse-client/vue-router`.

export type { CallRequest } from '../stores/call-store.js'
export type { MapView } from '../stores/map-store.js'
export type { PresenceView } from '../stores/presence-store.js'
export type { SubscriptionView, UseSubscriptionOptions } from '../stores/subscription-store.js'
export {
  type Refs,
  type UseCall,
  type UseCallOptions,
  type UseCallResult,
  useCall,
  useConnectionState,
  useMap,
  usePresence,
  useSession,
  useSubscription
} from './composables.js'
export { type ProvideClientOptions, provideClient, useClient } from './provide-client.js'
