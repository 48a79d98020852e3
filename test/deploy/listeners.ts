import type { Centrifuge } from 'centrifuge'
import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import { collect, event } from '../helper/relay.js'
import type { Outside } from './outside.js'

/** The official client on a channel, and what it hears there. */
export const listen = async (
  t: Test,
  outside: Outside,
  transport: 'websocket' | 'http_stream',
  channel: string,
  from?: string
) => {
  const sockets: WebSocket[] = []
  const client = outside.client(t, transport, { watch: (socket) => sockets.push(socket), ...(from && { from }) })
  const subscription = client.newSubscription(channel)
  const received = collect(subscription)
  subscription.subscribe()
  client.connect()
  await event(subscription, 'subscribed')
  return { subscription, received, sockets }
}

export interface IdleClient {
  readonly client: Centrifuge
  /** How often it had to connect. */
  readonly sockets: readonly WebSocket[]
  /** Resolves when the relay has pinged it so often. */
  pinged(count: number): Promise<void>
}

/** A client that is on no channel, and answers pings. */
export const idleClient = async (t: Test, outside: Outside): Promise<IdleClient> => {
  let pings = 0
  let check = (): void => undefined
  const sockets: WebSocket[] = []
  const watch = (socket: WebSocket): void => {
    sockets.push(socket)
    socket.on('message', (data) => {
      if (String(data) !== '{}') return
      pings += 1
      check()
    })
  }
  const client = outside.client(t, 'websocket', { watch })
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
