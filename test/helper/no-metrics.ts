import type { CoreMetrics } from '../../src/relay/core/core-metrics.js'

const noop = (): void => undefined

/** Counts nothing. */
export const NO_METRICS: CoreMetrics = {
  clientConnected: noop,
  clientClosed: noop,
  disconnected: noop,
  subscribed: noop,
  unsubscribed: noop,
  serverUnsubscribed: noop,
  command: noop,
  replied: noop,
  replyError: noop,
  recovered: noop,
  pongReceived: noop,
  published: noop,
  suppressed: noop,
  mapSuppressed: noop,
  mapKeysExpired: noop,
  mapExpiryFailed: noop,
  messageSent: noop,
  delivered: noop,
  conflated: noop,
  publicationAge: noop,
  filteredOut: noop,
  outsideView: noop,
  joinOrLeaveDropped: noop,
  engineAction: noop,
  unexpectedError: noop,
  sent: () => ({ messages: { value: 0 }, bytes: { value: 0 } })
}
