'use client'
// The public API of `gatehouse-client/react`.

export type { CallRequest } from '../stores/call-store.js'
export type { MapView } from '../stores/map-store.js'
export type { PresenceView } from '../stores/presence-store.js'
export type { SubscriptionView, UseSubscriptionOptions } from '../stores/subscription-store.js'
export { GatehouseProvider, type GatehouseProviderProps, useClient } from './context.js'
export {
  type UseCall,
  type UseCallOptions,
  type UseCallResult,
  useCall,
  useConnectionState,
  useMap,
  usePresence,
  useSession,
  useSubscription
} from './hooks.js'
export { RequireSession, type RequireSessionProps, requireSession } from './require-session.js'
