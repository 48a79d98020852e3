import type { Test } from 'tap'
import { Realtime, type RealtimeOptions } from '../../src/client/realtime/realtime.js'
import type { RealtimeEvents } from '../../src/client/realtime/realtime-events.js'
import type { Subscription } from '../../src/client/realtime/subscription.js'
import type { SubscriptionEvents } from '../../src/client/realtime/subscription-events.js'
import { eventually } from './eventually.js'
import { LOOPBACK } from './free-port.js'
import { MutedOnCloseWebSocket } from './muted-on-close-websocket.js'
import type { EdgeRelay } from './relay.js'
import { relayToken } from './relay-rules.js'

/** As in a browser, every message is a separate task. */
class BrowserWebSocket extends MutedOnCloseWebSocket {
  constructor(url: string, protocols: string | string[]) {
    super(url, protocols, { allowSynchronousEvents: false })
  }
}

/** Options of the official client for tests. */
export const CLIENT = { websocket: BrowserWebSocket, minReconnectDelay: 1, maxReconnectDelay: 20 }

export const socketAt = (port: number): string => `ws://${LOOPBACK}:${port}/connection/websocket`

/** The user of `openRealtime`. */
export const USER = '42'

/** A client of this relay that does not need a service for the negotiation. */
export const openRealtime = (
  t: Test,
  { port }: Pick<EdgeRelay, 'port'>,
  options: Partial<RealtimeOptions> = {}
): Realtime => {
  const realtime = new Realtime({
    negotiate: async () => ({ data: { url: socketAt(port), token: relayToken({ sub: USER }) } }),
    client: CLIENT,
    ...options
  })
  t.teardown(() => realtime.close())
  return realtime
}

/** The next event that matches. */
export const nextEvent = <Name extends keyof RealtimeEvents>(
  realtime: Realtime,
  name: Name,
  holds: (event: RealtimeEvents[Name]) => boolean = () => true
): Promise<RealtimeEvents[Name]> =>
  new Promise((resolve) => {
    const leave = realtime.on(name, (event) => {
      if (!holds(event)) return
      leave()
      resolve(event)
    })
  })

export const online = (realtime: Realtime): Promise<unknown> =>
  nextEvent(realtime, 'state', (state) => state === 'online')

/** The next event of a subscription. */
export const nextOf = <Data, Name extends keyof SubscriptionEvents>(
  subscription: Subscription<Data>,
  name: Name
): Promise<SubscriptionEvents<Data>[Name]> =>
  new Promise((resolve) => {
    const leave = subscription.on(name, (event) => {
      leave()
      resolve(event)
    })
  })

export const subscribed = (subscription: Subscription): Promise<unknown> =>
  eventually(() => subscription.state === 'subscribed', { label: `subscribed to ${subscription.channel}` })

/** Publishes until a publication is received, because publications before the subscription are not. */
export const publishUntil = async <Event>(
  received: Promise<Event>,
  publish: () => Promise<unknown>
): Promise<Event> => {
  let isReceived = false
  void received.then(() => {
    isReceived = true
  })
  while (!isReceived) await publish()
  return received
}
