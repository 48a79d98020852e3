import type { Duplex } from 'node:stream'
import t from 'tap'
import { collect, event, officialClient, startRelay, TRANSPORTS } from '../helper/relay.js'

const INTERRUPTIONS = 20
const NAMESPACES = {
  channel: {
    namespaces: [
      {
        name: 'seq',
        allow_subscribe_for_client: true,
        history_size: 1000,
        history_ttl: '300s',
        force_recovery: true,
        allowed_delta_types: ['fossil'],
        delta_publish: true
      }
    ]
  },
  client: { recovery_max_publication_limit: 1000 }
}

// With deltas over WebSocket only, because deltas do not depend on the transport.
for (const [transport, delta] of [...TRANSPORTS.map((name) => [name, false] as const), ['websocket', true] as const]) {
  t.test(
    `a ${delta ? 'delta ' : ''}client over ${transport} that is disconnected ${INTERRUPTIONS} times`,
    async (t) => {
      t.test('a reconnecting client receives every publication exactly once', async (t) => {
        const edge = await startRelay(t, NAMESPACES)
        const client = officialClient(t, edge, transport)
        const subscription = client.newSubscription('seq:1', delta ? { delta: 'fossil' } : {})
        const received = collect(subscription)
        const subscribed = event(subscription, 'subscribed')
        subscription.subscribe()
        client.connect()
        await subscribed

        let isPublishing = true
        let published = 0
        const publisher = (async () => {
          while (isPublishing) await edge.publish('seq:1', { n: ++published, filler: 'x'.repeat(100) })
        })()
        for (let interruption = 0; interruption < INTERRUPTIONS; interruption++) {
          const back = event(subscription, 'subscribed')
          // Closed by the server, possibly between two writes; a client that closes by itself would stop at a message boundary.
          for (const { transport: sink } of edge.relay.clients) sink.close({ code: 3011, reason: 'force reconnect' })
          await back
          const at = published
          await received.until((publications) => (publications.at(-1)?.data.n ?? 0) > at)
        }
        isPublishing = false
        await publisher
        await received.until((publications) => publications.at(-1)?.data.n === published)

        t.same(
          received.data.map(({ n }) => n),
          Array.from({ length: published }, (_, index) => index + 1)
        )
        t.ok(published > INTERRUPTIONS)
      })
    }
  )
}

t.test('a client whose socket is destroyed', async (t) => {
  t.test(
    `a client whose socket is destroyed ${INTERRUPTIONS} times receives every publication exactly once`,
    async (t) => {
      const edge = await startRelay(t, NAMESPACES)
      const sockets = new Set<Duplex>()
      edge.running.server.on('upgrade', (_request, socket) => sockets.add(socket))
      const client = officialClient(t, edge, 'websocket')
      const subscription = client.newSubscription('seq:1')
      const received = collect(subscription)
      const subscribed = event(subscription, 'subscribed')
      subscription.subscribe()
      client.connect()
      await subscribed

      let published = 0
      let isPublishing = true
      const publisher = (async () => {
        while (isPublishing) await edge.publish('seq:1', { n: ++published })
      })()
      for (let interruption = 0; interruption < INTERRUPTIONS; interruption++) {
        const back = event(subscription, 'subscribed')
        for (const socket of sockets) socket.destroy()
        sockets.clear()
        await back
      }
      isPublishing = false
      await publisher
      await received.until((publications) => publications.at(-1)?.data.n === published)

      t.same(
        received.data.map(({ n }) => n),
        Array.from({ length: published }, (_, index) => index + 1)
      )
    }
  )
})
