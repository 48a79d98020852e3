import t from 'tap'
import type { WebSocket } from 'ws'
import { eventually } from '../../helper/eventually.js'
import { MutedOnCloseWebSocket } from '../../helper/muted-on-close-websocket.js'
import { startRedis } from '../../helper/redis.js'
import { officialClient, startRelay } from '../../helper/relay.js'
import { mapPublisher, ShownMap, writeMany } from '../../helper/shown-map.js'

// The official client moves its position with every page of changes, but applies the pages only when it is live. If it is interrupted
// before that, it drops them.

const FILE = {
  channel: {
    namespaces: [
      {
        name: 'fleet',
        subscription_type: 'map',
        allow_subscribe_for_client: true,
        map: { mode: 'persistent', default_page_size: 2, min_page_size: 1, max_page_size: 50 }
      }
    ]
  }
}

const redis = await startRedis(t)
const edge = await startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: redis.url })

interface Interruption {
  readonly title: string
  /** Called before the client handles a message. Resolves when the interruption has happened. */
  apply(socket: WebSocket, channel: string): Promise<void>
}

const INTERRUPTIONS: readonly Interruption[] = [
  {
    title: 'a cut connection',
    apply: (socket) =>
      new Promise((resolve) => {
        socket.once('close', () => resolve())
        setImmediate(() => socket.terminate())
      })
  },
  {
    title: 'error 100',
    async apply(_socket, channel) {
      redis.pause()
      const { write } = mapPublisher(edge, channel)
      // The request of the client is before this one.
      await eventually(async () => 'error' in (await write('failed', 1)))
      redis.resume()
    }
  }
]

/** A client and what happens once it receives a message that matches. */
const follow = (t: Parameters<typeof officialClient>[0], channel: string) => {
  const hooks: { pattern: RegExp; run: (socket: WebSocket) => unknown }[] = []
  class ObservedWebSocket extends MutedOnCloseWebSocket {
    constructor(...args: ConstructorParameters<typeof WebSocket>) {
      super(...args)
      this.on('message', (data) => {
        if (hooks[0]?.pattern.test(String(data))) hooks.shift()?.run(this)
      })
    }
  }
  const client = officialClient(t, edge, 'websocket', { websocket: ObservedWebSocket })
  const options = { pageSize: 2, minResubscribeDelay: 1, maxResubscribeDelay: 20 }
  const subscription = client.newMapSubscription(channel, options)
  const shown = new ShownMap(subscription, (data) => data)
  subscription.subscribe()
  const once = <T>(pattern: RegExp, run: (socket: WebSocket) => T): Promise<Awaited<T>> =>
    new Promise((resolve) => hooks.push({ pattern, run: async (socket) => resolve(await run(socket)) }))
  return { client, shown, once }
}

const changeAll = async (channel: string): Promise<void> => {
  const { write, remove } = mapPublisher(edge, channel)
  for (let key = 1; key < 8; key++) await write(`k00${key}`, 'changed')
  await remove('k000')
}

for (const [index, { title, apply }] of INTERRUPTIONS.entries()) {
  t.test(`a client misses nothing after ${title} while it recovers`, async (t) => {
    const channel = `fleet:recovering-${index}`
    const { write, entries } = mapPublisher(edge, channel)
    await writeMany(edge, channel, 8)
    const { client, shown, once } = follow(t, channel)
    client.connect()
    await eventually(() => shown.syncs.length === 1)
    client.disconnect()
    await changeAll(channel)
    const interrupted = once(/"subscribe":\{/, (socket) => apply(socket, channel))
    client.connect()
    await interrupted
    await eventually(async () => !('error' in (await write('end', 1))))
    await eventually(() => shown.entries.has('end'))
    t.same(shown.state, await entries())
  })

  t.test(
    `a client misses nothing after ${title} while it loads a map that has changed since the first page`,
    async (t) => {
      const channel = `fleet:loading-${index}`
      const { write, entries } = mapPublisher(edge, channel)
      await writeMany(edge, channel, 8)
      const { client, shown, once } = follow(t, channel)
      const changed = once(/"phase":2/, async (socket) => {
        socket.pause()
        await changeAll(channel)
        socket.resume()
      })
      const interrupted = once(/"phase":1/, (socket) => apply(socket, channel))
      client.connect()
      await changed
      await interrupted
      await eventually(async () => !('error' in (await write('end', 1))))
      await eventually(() => shown.entries.has('end'))
      t.same(shown.state, await entries())
    }
  )
}
