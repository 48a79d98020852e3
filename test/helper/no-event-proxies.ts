import { ERROR_INTERNAL } from '../../src/relay/core/codes.js'
import type { EventProxies } from '../../src/relay/core/event-proxies.js'

/** For relays without a backend: every call fails. */
export const NO_EVENT_PROXIES: EventProxies = {
  requestHeaderNames: [],
  emulatedHeaderNames: [],
  connect: async () => ERROR_INTERNAL,
  refresh: async () => 'unavailable',
  subscribe: async () => ERROR_INTERNAL,
  refreshSubscription: async () => 'unavailable',
  publish: async () => ERROR_INTERNAL,
  mapPublish: async () => ERROR_INTERNAL,
  mapRemove: async () => ERROR_INTERNAL,
  rpc: async () => ERROR_INTERNAL
}
