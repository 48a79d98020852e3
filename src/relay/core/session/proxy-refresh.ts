import { type Clocks, type Expiry, expiryAt, isPast, NEVER } from '../clocks.js'
import { DISCONNECT_CONNECTION_EXPIRED, UNSUBSCRIBE_EXPIRED } from '../codes.js'
import type { RefreshOutcome } from '../event-proxies.js'
import type { Subscription } from '../fan-out/subscription.js'
import type { Client } from './client.js'

// Expired connections and subscriptions that the backend prolongs or ends.

/** How long they last if the backend cannot be asked; then it is asked again. */
const RETRY_MS = 60_000

/** The expiry while the backend is asked. The call has a time limit. */
const BEING_REFRESHED: Expiry = { ...NEVER, isRefreshedByBackend: true }

/** Called when the connection has expired. */
export const refreshConnectionByProxy = (client: Client): void => {
  const { context, events } = client
  // A client that was not told its expiry cannot refresh the connection itself after a reload.
  if (!context.clientOptions.refreshProxy) {
    client.close(DISCONNECT_CONNECTION_EXPIRED)
    return
  }
  client.expiry = BEING_REFRESHED
  runFor(client, async () => {
    const outcome = await events.ask((source) => context.eventProxies.refresh(source))
    // The API may have set another expiry meanwhile.
    if (client.isClosed || client.expiry !== BEING_REFRESHED) return
    const expiry = refreshedExpiry(outcome, context)
    // A connection without a new expiry has expired, a subscription has not.
    if (expiry === null || expiry === NEVER) {
      client.close(DISCONNECT_CONNECTION_EXPIRED)
      return
    }
    client.expiry = expiry
    if (typeof outcome === 'object') {
      client.info = outcome.info ?? client.info
      events.meta = outcome.meta ?? events.meta
    }
    client.deadlines.schedule()
  })
}

/** Called when the subscription has expired. */
export const refreshSubscriptionByProxy = (client: Client, subscription: Subscription): void => {
  const { context, events } = client
  const { name: channel, options } = subscription.channel
  const { subRefreshProxy: proxy } = options
  if (proxy === null) {
    client.endSubscription(subscription, UNSUBSCRIBE_EXPIRED)
    return
  }
  subscription.expiry = BEING_REFRESHED
  runFor(client, async () => {
    const outcome = await events.ask((source) =>
      context.eventProxies.refreshSubscription(proxy, { ...source, channel })
    )
    // The client may have unsubscribed meanwhile, and subscribed again.
    const isCurrent = client.subscriptions.get(channel) === subscription && subscription.expiry === BEING_REFRESHED
    if (client.isClosed || !isCurrent) return
    const expiry = refreshedExpiry(outcome, context)
    if (expiry === null) {
      client.endSubscription(subscription, UNSUBSCRIBE_EXPIRED)
      return
    }
    subscription.expiry = expiry
    if (typeof outcome === 'object') subscription.info = outcome.info ?? subscription.info
    client.deadlines.schedule()
  })
}

/** Null if it has expired, `NEVER` if the backend has not given a new expiry. */
const refreshedExpiry = (outcome: RefreshOutcome, clocks: Clocks): Expiry | null => {
  if (outcome === 'unavailable') return expiryAt(clocks.nowMs() + RETRY_MS, clocks, true)
  if (outcome === 'expired' || outcome.isExpired || isPast(outcome.expiresAt, clocks)) return null
  return expiryAt(outcome.expiresAt * 1000, clocks, true)
}

/** An unexpected error closes the client. */
const runFor = (client: Client, work: () => Promise<void>): void => {
  work().catch((error: unknown) => client.fail(error))
}
