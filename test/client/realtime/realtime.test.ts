import { once } from 'node:events'
import t, { type Test } from 'tap'
import type { PositionEntry } from '../../../schemas/realtime.js'
import { createApi } from '../../../src/client/api/api.js'
import { Realtime, type RealtimeOptions } from '../../../src/client/realtime/realtime.js'
import type { RealtimeEvents } from '../../../src/client/realtime/realtime-events.js'
import { VERSION } from '../../../src/client/version.js'
import { buildRelayApp, type RunningRelay } from '../../../src/relay/app.js'
import { createLogger } from '../../../src/shared/logger.js'
import { eventually } from '../../helper/eventually.js'
import { FakeClock } from '../../helper/fake-clock.js'
import { LOOPBACK, onFreePort } from '../../helper/free-port.js'
import { send } from '../../helper/http.js'
import { MutedOnCloseWebSocket } from '../../helper/muted-on-close-websocket.js'
import { type NegotiateServer, negotiation, startNegotiateServer } from '../../helper/negotiate-server.js'
import { startRelay } from '../../helper/relay.js'
import { API_KEY, configOf, relayToken } from '../../helper/relay-rules.js'

/** As in a browser, every message is a separate task. */
class BrowserWebSocket extends MutedOnCloseWebSocket {
  constructor(url: string, protocols: string | string[]) {
    super(url, protocols, { allowSynchronousEvents: false })
  }
}

const socketAt = (port: number): string => `ws://${LOOPBACK}:${port}/connection/websocket`

const openRealtime = (t: Test, { url }: NegotiateServer, options: Partial<RealtimeOptions> = {}): Realtime => {
  const api = createApi({ baseUrl: url })
  const realtime = new Realtime({
    negotiate: () => api.negotiate.read(),
    client: { websocket: BrowserWebSocket, minReconnectDelay: 1, maxReconnectDelay: 20 },
    ...options
  })
  t.teardown(() => realtime.stop())
  return realtime
}

/** The next event that matches. */
const next = <Name extends keyof RealtimeEvents>(
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

const online = (realtime: Realtime): Promise<unknown> => next(realtime, 'state', (state) => state === 'online')

const positions = (floorId: string, x: number, transmitterId = 'T1', more: Partial<PositionEntry> = {}) => ({
  type: 'position-batch',
  data: [{ transmitterId, position: { x, y: 0 }, positionMethod: 'nearest', floorId, ...more }]
})

const ambient = {
  type: 'ambient-batch',
  data: [{ deviceId: 'D1', deviceType: 'phone', manufacturer: 'Example', receiverId: 'r', rssi: -60, timestamp: 1 }]
}

/** Publishes until a publication is received, because subscribing has no event of its own. */
const publishUntil = async <Event>(received: Promise<Event>, publish: () => Promise<unknown>): Promise<Event> => {
  let isReceived = false
  void received.then(() => {
    isReceived = true
  })
  while (!isReceived) await publish()
  return received
}

/** A relay with its default configuration, and a service that accepts all clients. */
const setUp = async (t: Test, options: Partial<RealtimeOptions> = {}) => {
  const relay = await startRelay(t)
  const server = await startNegotiateServer(t, (_times, response) =>
    response.end(negotiation(socketAt(relay.port), relayToken({ sub: '42' })))
  )
  return { ...relay, server, realtime: openRealtime(t, server, options) }
}

t.test('realtime', async (t) => {
  t.test('the client connects to the negotiated address and receives global publications', async (t) => {
    const { realtime, publish, server } = await setUp(t)
    const states: string[] = []
    realtime.on('state', (state) => void states.push(state))
    t.equal(realtime.state, 'offline')
    t.equal(realtime.lastUpdateMs, null)
    const received = next(realtime, 'ambient-batch')
    realtime.start()
    realtime.start()

    t.same(await publishUntil(received, () => publish('global:all', ambient)), ambient)
    t.same(states, ['connecting', 'online'])
    t.equal(server.requestCount, 1)
    t.ok(realtime.lastUpdateMs)
  })

  t.test('a position batch on global:all has no floor', async (t) => {
    const { realtime, publish } = await setUp(t)
    const received = next(realtime, 'position-batch')
    realtime.start()
    const { floorId, data } = await publishUntil(received, () => publish('global:all', positions('f-2', 3)))

    t.equal(floorId, null)
    t.match(data, [{ transmitterId: 'T1', floorId: 'f-2' }])
  })

  t.test('the client reports its name and version to the relay', async (t) => {
    const { realtime, relay } = await setUp(t)
    realtime.start()
    await online(realtime)
    t.same(
      [...relay.clients].map(({ name, version }) => ({ name, version })),
      [{ name: 'gatehouse-client', version: VERSION }]
    )
  })

  t.test('the client receives a watched floor and stores the positions', async (t) => {
    const { realtime, publish } = await setUp(t)
    realtime.watchFloor(7)
    realtime.start()
    const batch = await publishUntil(next(realtime, 'position-batch'), () => publish('floor:7', positions('7', 3)))

    t.match(batch, { ...positions('7', 3), floorId: '7' })
    t.equal(realtime.store.get('T1')?.entry.position.x, 3)
  })

  t.test('showing another floor unsubscribes from the previous one', async (t) => {
    const { realtime, publish, api } = await setUp(t)
    const channels = async (): Promise<string[]> =>
      Object.keys(JSON.parse((await api('channels', {})).body).result.channels)
    realtime.start()
    realtime.showFloor('a')
    await publishUntil(next(realtime, 'position-batch'), () => publish('floor:a', positions('a', 1)))
    realtime.showFloor('b')
    await eventually(async () => {
      const names = await channels()
      return !names.includes('floor:a') && names.includes('floor:b')
    })

    const floors: (string | null)[] = []
    realtime.on('position-batch', ({ floorId }) => void floors.push(floorId))
    const last = next(realtime, 'position-batch', ({ data }) => data[0]?.position.x === 3)
    await publish('floor:a', positions('a', 2))
    await publish('floor:b', positions('b', 3, 'T2'))
    await last
    t.same(floors, ['b'], 'no position of the old floor is reported')
    t.same([...realtime.store.positions.keys()], ['T2'], 'no position of the old floor is stored')

    realtime.showFloor(null)
    await eventually(async () => !(await channels()).includes('floor:b'))
    t.same([...realtime.store.positions.keys()], [])
  })

  t.test('a floor stays subscribed until its last watcher releases it', async (t) => {
    const { realtime, publish } = await setUp(t)
    const release = realtime.watchFloor('a')
    realtime.watchFloor('a')
    realtime.start()
    await publishUntil(next(realtime, 'position-batch'), () => publish('floor:a', positions('a', 1)))
    release()
    const received = next(realtime, 'position-batch', ({ data }) => data[0]?.position.x === 2)
    await publish('floor:a', positions('a', 2))

    await received
    t.equal(realtime.store.positions.size, 1)
  })

  t.test('a malformed publication is ignored and counted', async (t) => {
    const { realtime, publish } = await setUp(t)
    realtime.watchFloor('a')
    realtime.start()
    for (const bad of [7, {}, { type: '', data: [] }, { type: 'position-batch', data: [null] }]) {
      const before = realtime.badPayloads
      await eventually(async () => {
        await publish('floor:a', bad)
        return realtime.badPayloads > before
      })
    }
    t.equal(realtime.lastUpdateMs, null)
    t.equal(realtime.store.positions.size, 0)
  })

  t.test('a publication with another type is reported as it is', async (t) => {
    const { realtime, publish } = await setUp(t)
    realtime.start()
    const message = { type: 'alerts', data: [{ kind: 'battery-low', open: 3 }] }
    const received = publishUntil(next(realtime, 'publication'), () => publish('global:all', message))

    t.same(await received, { channel: 'global:all', data: message })
    t.equal(realtime.badPayloads, 0)
    t.equal(realtime.lastUpdateMs, null)
  })

  t.test('a malformed entry is dropped and the others are kept', async (t) => {
    const { realtime, publish } = await setUp(t)
    const good = positions('a', 2)
    realtime.watchFloor('a')
    realtime.start()
    const received = publishUntil(next(realtime, 'position-batch'), () =>
      publish('floor:a', { ...good, data: [{ transmitterId: 'T9' }, ...good.data] })
    )

    t.same((await received).data, good.data)
    t.ok(realtime.badPayloads > 0)
    t.same([...realtime.store.positions.keys()], ['T1'])
  })

  t.test('a transmitter without a recent update is removed and reported with its last position', async (t) => {
    const clock = new FakeClock()
    const { realtime, publish } = await setUp(t, { clock, maxAgeMs: 1000 })
    realtime.watchFloor('a')
    realtime.start()
    await publishUntil(next(realtime, 'position-batch'), () => publish('floor:a', positions('a', 1)))
    t.equal(realtime.store.positions.size, 1)
    const removed = next(realtime, 'removed')
    clock.advance(1500)

    t.match(await removed, { entry: { transmitterId: 'T1', position: { x: 1, y: 0 } } })
    t.equal(realtime.store.positions.size, 0)
  })

  t.test('a floor is live while batches arrive, then stale with all its positions, then live again', async (t) => {
    const clock = new FakeClock()
    const { realtime, publish } = await setUp(t, { clock })
    const changes: RealtimeEvents['freshness'][] = []
    realtime.on('freshness', (change) => void changes.push(change))
    realtime.watchFloor('a')
    realtime.start()
    t.equal(realtime.freshness('a'), 'unknown')
    const timestamp = clock.now() - 100
    await publishUntil(next(realtime, 'position-batch'), () =>
      publish('floor:a', positions('a', 1, 'T1', { timestamp }))
    )
    t.equal(realtime.freshness('a'), 'live')
    clock.advance(10_000)

    t.same([realtime.freshness('a'), realtime.state], ['stale', 'online'])
    t.equal(realtime.ageMs('a'), 10_100)
    t.equal(realtime.store.ageMs('T1'), 10_100, 'the position stays, with its age')

    const back = next(realtime, 'position-batch', ({ data }) => data[0]?.position.x === 2)
    await publish('floor:a', positions('a', 2, 'T1', { timestamp: clock.now() }))
    await back
    realtime.stop()
    t.same(changes, [
      { floorId: 'a', state: 'live', ageMs: 100 },
      { floorId: 'a', state: 'stale', ageMs: 5000 },
      { floorId: 'a', state: 'live', ageMs: 0 },
      { floorId: 'a', state: 'unknown', ageMs: null }
    ])
  })

  t.test('the snapshot of a floor is stored as one batch, and live positions follow', async (t) => {
    const clock = new FakeClock()
    const { realtime, publish } = await setUp(t, { clock })
    const nowMs = clock.now()
    await publish('floor:a', positions('a', 1, 'T1', { timestamp: nowMs - 3000 }))
    await publish('floor:a', positions('a', 1, 'T2', { timestamp: nowMs - 2000 }))
    await publish('floor:a', positions('a', 2, 'T1', { timestamp: nowMs - 1000 }))
    const sizes: number[] = []
    realtime.on('position-batch', ({ data }) => void sizes.push(data.length))
    const snapshot = next(realtime, 'position-batch')
    realtime.watchFloor('a')
    realtime.start()
    await snapshot
    t.same(
      ['T1', 'T2'].map((id) => [realtime.store.get(id)?.entry.position.x, realtime.store.ageMs(id)]),
      [
        [2, 1000],
        [1, 2000]
      ]
    )
    t.equal(realtime.ageMs('a'), 1000)

    const live = next(realtime, 'position-batch', ({ data }) => data[0]?.position.x === 3)
    await publish('floor:a', positions('a', 3, 'T1', { timestamp: nowMs }))
    await live
    t.same(sizes, [2, 1])
    t.equal(realtime.freshness('a'), 'live')
  })

  t.test('a late entry neither replaces a newer position nor is reported', async (t) => {
    const clock = new FakeClock()
    const { realtime, publish } = await setUp(t, { clock })
    const nowMs = clock.now()
    realtime.watchFloor('a')
    realtime.start()
    await publishUntil(next(realtime, 'position-batch'), () =>
      publish('floor:a', positions('a', 2, 'T1', { timestamp: nowMs }))
    )
    const reported = new Set<string>()
    realtime.on('position-batch', ({ data }) => {
      for (const { transmitterId, position } of data) reported.add(`${transmitterId} at ${position.x}`)
    })
    const last = next(realtime, 'position-batch', ({ data }) => data[0]?.transmitterId === 'T3')
    const late = positions('a', 1, 'T1', { timestamp: nowMs - 2000 })
    await publish('floor:a', late)
    await publish('floor:a', { ...late, data: [...late.data, ...positions('a', 1, 'T2').data] })
    await publish('floor:a', positions('a', 1, 'T3'))
    await last

    // The first publication may have been repeated.
    reported.delete('T1 at 2')
    t.same([...reported], ['T2 at 1', 'T3 at 1'])
    t.equal(realtime.store.get('T1')?.entry.position.x, 2)
  })

  t.test('a rejected subscription is reported with its channel', async (t) => {
    const relay = await startRelay(t, {
      channel: { namespaces: [{ name: 'global', allow_subscribe_for_client: true }, { name: 'floor' }] }
    })
    const server = await startNegotiateServer(t, (_times, response) =>
      response.end(negotiation(socketAt(relay.port), relayToken({ sub: '42' })))
    )
    const realtime = openRealtime(t, server)
    const rejection = next(realtime, 'refused')
    realtime.watchFloor('a')
    realtime.start()

    t.match(await rejection, { channel: 'floor:a', code: 103, retryable: false })
    t.equal(realtime.state, 'online')
  })

  t.test('the client can be stopped and started again', async (t) => {
    const clock = new FakeClock()
    const { realtime, publish, relay } = await setUp(t, { clock })
    realtime.watchFloor('a')
    realtime.start()
    await publishUntil(next(realtime, 'position-batch'), () => publish('floor:a', positions('a', 1)))
    realtime.stop()
    t.equal(realtime.state, 'offline')
    t.equal(realtime.store.positions.size, 0)
    t.equal(clock.pendingTimers, 0)
    await eventually(async () => {
      await publish('floor:a', positions('a', 2))
      return relay.stats().clients === 0
    })
    t.equal(realtime.store.positions.size, 0)

    realtime.start()
    await publishUntil(next(realtime, 'position-batch'), () => publish('floor:a', positions('a', 3)))
    t.equal(realtime.store.positions.size, 1)
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
    realtime.watchFloor('a')
    realtime.start()
    await server.untilRequests(2)

    const received = next(realtime, 'position-batch')
    await publishUntil(received, () => publish('floor:a', positions('a', 1)))
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
    const offline = next(realtime, 'state', (state) => state === 'offline')
    const back = online(realtime)
    realtime.start()
    await offline
    clock.advance(500)

    await back
    t.equal(server.requestCount, 2)
  })

  t.test('the client moves to a new relay address', async (t) => {
    const { realtime, server, port } = await setUp(t)
    const other = await startRelay(t)
    const first = { lifetimeSeconds: 1 }
    server.respond = (times, response) =>
      response.end(
        times === 1
          ? negotiation(socketAt(port), relayToken({ sub: '42' }, first))
          : negotiation(socketAt(other.port), relayToken({ sub: '42' }))
      )
    realtime.watchFloor('a')
    realtime.start()
    await server.untilRequests(2)

    await publishUntil(next(realtime, 'position-batch'), () => other.publish('floor:a', positions('a', 1)))
    t.equal(realtime.state, 'online')
  })

  t.test('a rejected negotiation stops the client until it is started again', async (t) => {
    const clock = new FakeClock()
    const { realtime, server } = await setUp(t, { clock })
    const { respond } = server
    server.respond = (_times, response) =>
      response.writeHead(401).end('{"success":false,"error":{"code":"TOKEN_EXPIRED","message":"Over"},"requestId":"r"}')
    const rejection = next(realtime, 'refused')
    realtime.start()
    t.same(await rejection, { channel: null, code: 'TOKEN_EXPIRED', message: 'Over', retryable: false })
    t.equal(realtime.state, 'offline')
    clock.advance(600_000)
    t.equal(server.requestCount, 1)

    server.respond = respond
    const back = online(realtime)
    realtime.start()
    await back
  })

  t.test('a rejected token renewal stops the client', async (t) => {
    const { realtime, server, port } = await setUp(t)
    server.respond = (times, response) => {
      if (times === 1) response.end(negotiation(socketAt(port), relayToken({ sub: '42' }, { lifetimeSeconds: 1 })))
      else response.writeHead(403).end('{"error":{"code":"LOCKED","message":"Locked"}}')
    }
    const rejection = next(realtime, 'refused')
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
    realtime.watchFloor('a')
    realtime.start()
    await first
    const refused = next(realtime, 'refused')
    await api('disconnect', { user: '42' })
    t.same(await refused, { channel: null, code: 3503, message: 'force disconnect', retryable: true })
    t.equal(realtime.state, 'offline')
    t.equal(server.requestCount, 1)
    const back = online(realtime)
    clock.advance(500)
    await back

    t.equal(server.requestCount, 2)
    await publishUntil(next(realtime, 'position-batch'), () => publish('floor:a', positions('a', 1)))
  })

  t.test('a client that an operator disconnects with a code of the application stays disconnected', async (t) => {
    const clock = new FakeClock()
    const { realtime, server, api } = await setUp(t, { clock })
    const first = online(realtime)
    realtime.start()
    await first
    const refused = next(realtime, 'refused')
    await api('disconnect', { user: '42', disconnect: { code: 4500, reason: 'locked' } })
    t.same(await refused, { channel: null, code: 4500, message: 'locked', retryable: false })
    clock.advance(600_000)

    t.equal(realtime.state, 'offline')
    t.equal(server.requestCount, 1)
  })

  t.test('a client that an operator unsubscribes from a floor subscribes to it again', async (t) => {
    const clock = new FakeClock()
    const { realtime, api, publish } = await setUp(t, { clock, random: () => 1 })
    realtime.watchFloor('a')
    realtime.start()
    await publishUntil(next(realtime, 'position-batch'), () => publish('floor:a', positions('a', 1)))
    const refused = next(realtime, 'refused')
    await api('unsubscribe', { user: '42', channel: 'floor:a' })
    t.match(await refused, { channel: 'floor:a', code: 2000, retryable: true })
    t.equal(realtime.state, 'online')
    clock.advance(500)

    await publishUntil(
      next(realtime, 'position-batch', ({ data }) => data[0]?.position.x === 2),
      () => publish('floor:a', positions('a', 2))
    )
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
      // One timer is for the sweep; a second one means that the response has arrived and a retry is scheduled.
      await eventually(() => clock.pendingTimers >= 2)
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
    const realtime = openRealtime(t, server)
    const states: string[] = []
    realtime.on('state', (state) => void states.push(state))
    const publish = (channel: string, data: unknown): Promise<unknown> =>
      send(`http://${LOOPBACK}:${port}`, '/api/publish', {
        method: 'POST',
        body: JSON.stringify({ channel, data }),
        headers: { 'x-api-key': API_KEY }
      })
    realtime.watchFloor('a')
    realtime.start()
    await publishUntil(next(realtime, 'position-batch'), () => publish('floor:a', positions('a', 1)))

    const offline = next(realtime, 'state', (state) => state === 'offline')
    await kill(first)
    await offline
    const gap = next(realtime, 'gap', ({ channel }) => channel === 'floor:a')
    await listen(t, port)
    await gap
    await publishUntil(
      next(realtime, 'position-batch', ({ data }) => data[0]?.position.x === 2),
      () => publish('floor:a', positions('a', 2))
    )
    t.same(states, ['connecting', 'online', 'connecting', 'offline', 'online'])
    t.equal(server.requestCount, 1, 'its token is still good')
  })
})

const listen = async (t: Test, port: number): Promise<RunningRelay> => {
  const log = createLogger({ name: 'relay', level: 'silent' })
  const running = await buildRelayApp(configOf(), { log, version: 'test' })
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
