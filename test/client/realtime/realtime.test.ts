import { once } from 'node:events'
import t, { type Test } from 'tap'
import { createCaller } from '../../../src/client/api/caller.js'
import type { Realtime, RealtimeOptions } from '../../../src/client/realtime/realtime.js'
import { VERSION } from '../../../src/client/version.js'
import { buildRelayApp, type RunningRelay } from '../../../src/relay/app.js'
import { createLogger } from '../../../src/shared/logger.js'
import { eventually } from '../../helper/eventually.js'
import { FakeClock } from '../../helper/fake-clock.js'
import { LOOPBACK, onFreePort } from '../../helper/free-port.js'
import { send } from '../../helper/http.js'
import { type NegotiateServer, negotiation, startNegotiateServer } from '../../helper/negotiate-server.js'
import { nextEvent, nextOf, online, openRealtime, publishUntil, socketAt } from '../../helper/realtime.js'
import { startRelay } from '../../helper/relay.js'
import { API_KEY, configOf, relayToken } from '../../helper/relay-rules.js'

const FILE = {
  channel: {
    namespaces: [
      {
        name: 'orders',
        allow_subscribe_for_client: true,
        history_size: 100,
        history_ttl: '60s',
        force_recovery: true,
        force_positioning: true
      },
      { name: 'private' }
    ]
  }
}

/** A client that negotiates with this server. */
const openNegotiated = (t: Test, { url }: NegotiateServer, options: Partial<RealtimeOptions> = {}): Realtime => {
  const call = createCaller({ baseUrl: url })
  return openRealtime(t, { port: 0 }, { negotiate: () => call('GET', '/api/negotiate'), ...options })
}

/** A relay, and a service that accepts all clients. */
const setUp = async (t: Test, options: Partial<RealtimeOptions> = {}) => {
  const relay = await startRelay(t, FILE)
  const server = await startNegotiateServer(t, (_times, response) =>
    response.end(negotiation(socketAt(relay.port), relayToken({ sub: '42' })))
  )
  return { ...relay, server, realtime: openNegotiated(t, server, options) }
}

t.test('the connection', async (t) => {
  t.test('the connection opens with the first subscription, at the negotiated address', async (t) => {
    const { realtime, publish, server } = await setUp(t)
    const states: string[] = []
    realtime.on('state', (state) => void states.push(state))
    t.equal(realtime.state, 'offline')
    t.equal(server.requestCount, 0)
    const orders = realtime.subscribe('orders:42')
    realtime.start()

    const { channel, data } = await publishUntil(nextOf(orders, 'publication'), () =>
      publish('orders:42', { total: 7 })
    )
    t.same({ channel, data }, { channel: 'orders:42', data: { total: 7 } })
    t.same(states, ['connecting', 'online'])
    t.equal(server.requestCount, 1)
  })

  t.test('the client reports its name and version to the relay', async (t) => {
    const { realtime, relay } = await setUp(t)
    const connected = online(realtime)
    realtime.start()
    await connected
    t.same(
      [...relay.clients].map(({ name, version }) => ({ name, version })),
      [{ name: 'gatehouse-client', version: VERSION }]
    )
  })

  t.test('a rejected subscription is reported with its channel, and the connection stays', async (t) => {
    const { realtime } = await setUp(t)
    const rejection = nextEvent(realtime, 'refused')
    const channel = realtime.subscribe('private:1')
    t.match(await rejection, { channel: 'private:1', code: 103, retryable: false })
    t.equal(channel.state, 'unsubscribed')
    t.match(channel.error, { name: 'RelayError', code: 103, temporary: false })
    t.equal(realtime.state, 'online')
  })

  t.test('a stopped client does not connect again before it is started', async (t) => {
    const clock = new FakeClock()
    const { realtime, publish, relay, server } = await setUp(t, { clock })
    const orders = realtime.subscribe('orders:42')
    await publishUntil(nextOf(orders, 'publication'), () => publish('orders:42', { total: 1 }))
    realtime.stop()
    t.equal(realtime.state, 'offline')
    t.equal(orders.state, 'subscribing')
    t.equal(clock.pendingTimers, 0)
    await eventually(() => relay.stats().clients === 0)
    realtime.subscribe('orders:43')
    await t.rejects(realtime.rpc('a.method'), { name: 'RelayError', message: 'not connected', temporary: true })
    t.equal(server.requestCount, 1)

    realtime.start()
    await publishUntil(nextOf(orders, 'publication'), () => publish('orders:42', { total: 2 }))
  })

  t.test('the client does not connect if it is stopped during the negotiation', async (t) => {
    const { realtime, server, relay } = await setUp(t)
    const { respond } = server
    server.respond = (times, response) => {
      realtime.stop()
      respond(times, response)
    }
    realtime.start()
    await server.untilRequests(1)
    const again = online(realtime)
    server.respond = respond
    realtime.start()
    await again

    t.equal(relay.stats().clients, 1)
  })
})

t.test('the token of realtime', async (t) => {
  t.test('a new token is requested before the old one expires, without a reconnect', async (t) => {
    const { realtime, server, publish, port } = await setUp(t)
    server.respond = (times, response) =>
      response.end(negotiation(socketAt(port), relayToken({ sub: '42' }, { lifetimeSeconds: times === 1 ? 1 : 3600 })))
    const orders = realtime.subscribe('orders:42')
    await server.untilRequests(2)

    const received = nextOf(orders, 'publication')
    await publishUntil(received, () => publish('orders:42', { total: 1 }))
    t.equal(realtime.state, 'online')
    t.equal(server.requestCount, 2)
  })

  t.test('a new token is requested after the old one has expired', async (t) => {
    const { realtime, server, port } = await setUp(t)
    const past = { nowMs: Date.now() - 60_000, lifetimeSeconds: 1 }
    server.respond = (times, response) =>
      response.end(negotiation(socketAt(port), relayToken({ sub: '42' }, times === 1 ? past : {})))
    realtime.start()

    await online(realtime)
    t.equal(server.requestCount, 2)
  })

  t.test('a new token is requested if the relay rejects the signature', async (t) => {
    const clock = new FakeClock()
    const { realtime, server, port } = await setUp(t, { clock })
    server.respond = (times, response) =>
      response.end(
        negotiation(socketAt(port), times === 1 ? `${relayToken({ sub: '42' })}x` : relayToken({ sub: '42' }))
      )
    const offline = nextEvent(realtime, 'state', (state) => state === 'offline')
    const back = online(realtime)
    realtime.start()
    await offline
    clock.advance(500)

    await back
    t.equal(server.requestCount, 2)
  })

  t.test('the client moves to a new relay address', async (t) => {
    const { realtime, server, port } = await setUp(t)
    const other = await startRelay(t, FILE)
    const first = { lifetimeSeconds: 1 }
    server.respond = (times, response) =>
      response.end(
        times === 1
          ? negotiation(socketAt(port), relayToken({ sub: '42' }, first))
          : negotiation(socketAt(other.port), relayToken({ sub: '42' }))
      )
    const orders = realtime.subscribe('orders:42')
    await server.untilRequests(2)

    await publishUntil(nextOf(orders, 'publication'), () => other.publish('orders:42', { total: 1 }))
    t.equal(realtime.state, 'online')
  })

  t.test('a rejected negotiation stops the client until it is started again', async (t) => {
    const clock = new FakeClock()
    const { realtime, server } = await setUp(t, { clock })
    const { respond } = server
    server.respond = (_times, response) =>
      response.writeHead(401).end('{"success":false,"error":{"code":"TOKEN_EXPIRED","message":"Over"},"requestId":"r"}')
    const rejection = nextEvent(realtime, 'refused')
    realtime.start()
    t.same(await rejection, { channel: null, code: 'TOKEN_EXPIRED', message: 'Over', retryable: false })
    t.equal(realtime.state, 'offline')
    t.match(realtime.error, { code: 'TOKEN_EXPIRED', message: 'Over' })
    clock.advance(600_000)
    t.equal(server.requestCount, 1)

    server.respond = respond
    const back = online(realtime)
    realtime.start()
    await back
    t.equal(realtime.error, null)
  })

  t.test('a rejected token renewal stops the client', async (t) => {
    const { realtime, server, port } = await setUp(t)
    server.respond = (times, response) => {
      if (times === 1) response.end(negotiation(socketAt(port), relayToken({ sub: '42' }, { lifetimeSeconds: 1 })))
      else response.writeHead(403).end('{"error":{"code":"LOCKED","message":"Locked"}}')
    }
    const rejection = nextEvent(realtime, 'refused')
    realtime.start()

    t.same(await rejection, { channel: null, code: 'LOCKED', message: 'Locked', retryable: false })
    t.equal(realtime.state, 'offline')
  })
})

t.test('an operator', async (t) => {
  t.test('a client that an operator disconnects negotiates and connects again', async (t) => {
    const clock = new FakeClock()
    const { realtime, server, api, publish } = await setUp(t, { clock, random: () => 1 })
    const first = online(realtime)
    const orders = realtime.subscribe('orders:42')
    await first
    const refused = nextEvent(realtime, 'refused')
    await api('disconnect', { user: '42' })
    t.same(await refused, { channel: null, code: 3503, message: 'force disconnect', retryable: true })
    t.equal(realtime.state, 'offline')
    t.match(realtime.error, { code: 3503, message: 'force disconnect' })
    t.equal(server.requestCount, 1)
    const back = online(realtime)
    clock.advance(500)
    await back
    t.equal(realtime.error, null)

    t.equal(server.requestCount, 2)
    await publishUntil(nextOf(orders, 'publication'), () => publish('orders:42', { total: 1 }))
  })

  t.test('a client that an operator disconnects with a code of the application stays disconnected', async (t) => {
    const clock = new FakeClock()
    const { realtime, server, api } = await setUp(t, { clock })
    const first = online(realtime)
    realtime.start()
    await first
    const refused = nextEvent(realtime, 'refused')
    await api('disconnect', { user: '42', disconnect: { code: 4500, reason: 'locked' } })
    t.same(await refused, { channel: null, code: 4500, message: 'locked', retryable: false })
    clock.advance(600_000)

    t.equal(realtime.state, 'offline')
    t.equal(server.requestCount, 1)
  })

  t.test('a client that an operator unsubscribes from a channel subscribes to it again', async (t) => {
    const clock = new FakeClock()
    const { realtime, api, publish } = await setUp(t, { clock, random: () => 1 })
    const orders = realtime.subscribe('orders:42')
    await publishUntil(nextOf(orders, 'publication'), () => publish('orders:42', { total: 1 }))
    const refused = nextEvent(realtime, 'refused')
    await api('unsubscribe', { user: '42', channel: 'orders:42' })
    t.match(await refused, { channel: 'orders:42', code: 2000, retryable: true })
    t.equal(realtime.state, 'online')
    clock.advance(500)

    await publishUntil(nextOf(orders, 'publication'), () => publish('orders:42', { total: 2 }))
  })
})

t.test('an unavailable service', async (t) => {
  t.test('the negotiation is retried with growing delays', async (t) => {
    const clock = new FakeClock()
    const { realtime, server } = await setUp(t, { clock, random: () => 1 })
    const { respond } = server
    const states: string[] = []
    realtime.on('state', (state) => void states.push(state))
    server.respond = (times, response) => {
      if (times === 1) response.writeHead(502).end()
      else if (times === 2) response.end('{"success":true,"data":{"url":"javascript:alert(1)","token":"x"}}')
      else if (times === 3) response.destroy()
      else respond(times, response)
    }
    const back = online(realtime)
    realtime.start()
    for (const [times, delayMs] of [
      [1, 500],
      [2, 1000],
      [3, 2000]
    ] as const) {
      await server.untilRequests(times)
      // The response has arrived and a retry is scheduled.
      await eventually(() => clock.pendingTimers === 1)
      clock.advance(delayMs - 1)
      t.equal(server.requestCount, times)
      clock.advance(1)
    }

    await back
    t.same(states, ['connecting', 'offline', 'online'])
  })

  t.test('the client reports a killed relay and recovers after its restart', async (t) => {
    const { port, started: first } = await onFreePort((port) => listen(t, port))
    const server = await startNegotiateServer(t, (_times, response) =>
      response.end(negotiation(socketAt(port), relayToken({ sub: '42' })))
    )
    const realtime = openNegotiated(t, server)
    const states: string[] = []
    realtime.on('state', (state) => void states.push(state))
    const publish = (channel: string, data: unknown): Promise<unknown> =>
      send(`http://${LOOPBACK}:${port}`, '/api/publish', {
        method: 'POST',
        body: JSON.stringify({ channel, data }),
        headers: { 'x-api-key': API_KEY }
      })
    const orders = realtime.subscribe('orders:42')
    await publishUntil(nextOf(orders, 'publication'), () => publish('orders:42', { total: 1 }))

    const offline = nextEvent(realtime, 'state', (state) => state === 'offline')
    await kill(first)
    await offline
    t.match(realtime.error, { message: 'transport closed' })
    const gap = nextOf(orders, 'gap')
    await listen(t, port)
    await gap
    await publishUntil(nextOf(orders, 'publication'), () => publish('orders:42', { total: 2 }))
    t.equal(realtime.error, null)
    t.same(states, ['connecting', 'online', 'connecting', 'offline', 'online'])
    t.equal(server.requestCount, 1, 'its token is still good')
  })
})

const listen = async (t: Test, port: number): Promise<RunningRelay> => {
  const log = createLogger({ name: 'relay', level: 'silent' })
  const running = await buildRelayApp(configOf(FILE), { log, version: 'test' })
  await once(running.server.listen(port, LOOPBACK), 'listening')
  t.teardown(() => kill(running))
  return running
}

const kill = async ({ server, closeConnections, close }: RunningRelay): Promise<void> => {
  if (!server.listening) return
  const closed = close()
  closeConnections()
  await closed
}
