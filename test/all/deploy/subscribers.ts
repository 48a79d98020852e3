import type { Centrifuge } from 'centrifuge'
import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import { collect, event } from '../../helper/relay.js'
import type { ExternalClient, SocketOptions } from './external-client.js'

/** Subscribes the official client to a channel and collects its publications. */
export const subscribe = async (
  t: Test,
  external: ExternalClient,
  transport: 'websocket' | 'http_stream',
  channel: string,
  options: Omit<SocketOptions, 'origin'> = {}
) => {
  const sockets: WebSocket[] = []
  const client = external.client(t, transport, { onSocket: (socket) => sockets.push(socket), ...options })
  const subscription = client.newSubscription(channel)
  const received = collect(subscription)
  subscription.subscribe()
  client.connect()
  await event(subscription, 'subscribed')
  return { subscription, received, sockets }
}

export interface IdleClient {
  readonly client: Centrifuge
  /** One per connection. */
  readonly sockets: readonly WebSocket[]
  /** Resolves after this number of pings. */
  pinged(count: number): Promise<void>
}

/** A client without subscriptions that responds to pings. */
export const idleClient = async (t: Test, external: ExternalClient): Promise<IdleClient> => {
  let pings = 0
  let check = (): void => undefined
  const sockets: WebSocket[] = []
  const onSocket = (socket: WebSocket): void => {
    sockets.push(socket)
    socket.on('message', (data) => {
      if (String(data) !== '{}') return
      pings += 1
      check()
    })
  }
  const client = external.client(t, 'websocket', { onSocket })
  const connected = event(client, 'connected')
  client.connect()
  await connected
  return {
    client,
    sockets,
    pinged: (count) =>
      new Promise((resolve) => {
        check = () => {
          if (pings >= count) resolve()
        }
        check()
      })
  }
}
