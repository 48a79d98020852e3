import t, { type Test } from 'tap'
import { type Answer, RawAnswer, RESET, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import type { Json } from '../../helper/raw-client.js'
import { connectClient, type EdgeRelay, event, officialClient, startRelay, subscribeTo } from '../../helper/relay.js'
import { configOf, relayToken } from '../../helper/relay-rules.js'
import {
  CODECS,
  type CodecClient,
  connectedWithToken,
  inSeconds,
  openCodecClient,
  proxiedFile,
  withRefreshProxy
} from './fixture.js'

// The clock of a relay is advanced, so that each test has its own.

const RETRY_MS = 60_000
/** Pings would be in the way of replies. */
const RARE_PINGS = { ping_interval: '1h' }

t.test('refresh', async (t) => {
  const backend = await startEventBackend(t)
  t.beforeEach(() => backend.reset())
  const start = (t: Test): Promise<EdgeRelay> =>
    startRelay(
      t,
      proxiedFile(
        backend,
        { include_connection_meta: true },
        { ...RARE_PINGS, ...withRefreshProxy(backend, { include_connection_meta: true }) }
      )
    )
  /** A client whose connection expires in 100 seconds. */
  const connected = async (t: Test, edge: EdgeRelay, codec: (typeof CODECS)[number] = 'json'): Promise<CodecClient> => {
    backend.on('connect', { result: { user: '7', expire_at: inSeconds(100), info: { name: 'old' }, meta: { n: 1 } } })
    const client = await openCodecClient(t, codec, edge.url)
    const { connect } = await client.request({ id: 1, connect: {} })
    t.notOk('expires' in Object(connect) || 'ttl' in Object(connect), 'the client does not refresh')
    return client
  }
  const nextRefresh = async (edge: EdgeRelay, afterMs: number): Promise<void> => {
    const asked = backend.next('refresh')
    edge.advance(afterMs)
    await asked
  }

  for (const codec of CODECS) {
    t.test(`the backend prolongs the connection of a ${codec} client`, async (t) => {
      const edge = await start(t)
      const client = await connected(t, edge, codec)
      backend.on('refresh', {
        result: { expire_at: inSeconds(300), info: { name: 'new' }, meta: { n: 2 } }
      })
      await nextRefresh(edge, 101_000)
      t.match(backend.of('refresh')[0]?.body, { user: '7', meta: { n: 1 }, protocol: codec, client: String })
      await eventually(async () => {
        await client.request({ id: 2, rpc: { method: 'a' } })
        return Object(backend.of('rpc').at(-1)?.body.meta).n === 2
      })
      await client.request({ id: 3, subscribe: { channel: 'open:a' } })
      client.send({ id: 4, publish: { channel: 'open:a', data: '1' } })
      const [push] = [await client.next(), await client.next()].filter((each) => each.push !== undefined)
      t.match(push?.push?.pub?.info, { conn_info: { name: 'new' } })
      edge.advance(100_000)
      t.equal(backend.of('refresh').length, 1, 'not asked before the new expiry')
      await nextRefresh(edge, 100_000)
    })
  }

  t.test('these answers close the connection with 3005', async (t) => {
    const answers: readonly Answer[] = [
      { result: { expired: true, expire_at: inSeconds(999) } },
      { result: { expire_at: inSeconds(-5) } },
      { result: {} },
      {},
      { error: { code: 1000, message: 'e' } },
      { disconnect: { code: 4501, reason: 'banned' } }
    ]
    for (const answer of answers) {
      const edge = await start(t)
      const client = await connected(t, edge)
      backend.on('refresh', answer)
      edge.advance(101_000)
      t.equal(await client.closed, '3005 connection expired', JSON.stringify(answer))
    }
  })

  t.test('a failed call keeps the connection for a minute and is not repeated before', async (t) => {
    const failures: readonly Answer[] = [RESET, new RawAnswer(500), new RawAnswer(200, '<html>')]
    for (const failure of failures) {
      backend.reset()
      const edge = await start(t)
      const client = await connected(t, edge)
      backend.on('refresh', failure)
      await nextRefresh(edge, 101_000)
      await eventually(() => backend.concurrency === 0)
      for (let n = 0; n < 5; n++) edge.advance(1000)
      t.equal(backend.of('refresh').length, 1)
      backend.on('refresh', { result: { expired: true } })
      await eventually(() => {
        edge.advance(RETRY_MS / 4)
        return backend.of('refresh').length === 2
      })
      t.equal(await client.closed, '3005 connection expired')
    }
  })

  t.test('connections with a token are refreshed by the backend too, and cannot refresh themselves', async (t) => {
    const edge = await start(t)
    const client = await openCodecClient(t, 'json', edge.url)
    const { connect } = await client.request({
      id: 1,
      connect: { token: relayToken({ sub: '1' }, { lifetimeSeconds: 100 }) }
    })
    t.notOk('expires' in Object(connect))
    backend.on('refresh', { result: { expire_at: inSeconds(500) } })
    await nextRefresh(edge, 101_000)
    client.send({ id: 2, refresh: { token: relayToken({ sub: '1' }) } })
    t.equal(await client.closed, '3501 bad request')
  })

  t.test('a client that leaves while the backend is asked aborts the call', async (t) => {
    const edge = await start(t)
    const client = await connected(t, edge)
    const held = backend.hold('refresh')
    edge.advance(101_000)
    const request = await held.next()
    edge.advance(1000)
    t.equal(backend.of('refresh').length, 1, 'one call at a time')
    client.ws.terminate()
    await eventually(() => request.isAborted, { label: 'the request is aborted' })
    edge.advance(RETRY_MS * 2)
    t.equal(backend.of('refresh').length, 1)
  })

  t.test('the API refreshes the connection while the backend is asked, and the late answer is ignored', async (t) => {
    const edge = await start(t)
    const client = await connected(t, edge)
    const held = backend.hold('refresh')
    edge.advance(101_000)
    await held.next()
    await edge.api('refresh', { user: '7', expire_at: inSeconds(1000) })
    const { push } = await client.next()
    t.match(push, { refresh: {} })
    t.notOk('expires' in Object(push?.refresh), 'the client does not refresh')
    held.release({ result: { expired: true } })
    await eventually(() => backend.concurrency === 0)
    t.match(await client.request({ id: 2, rpc: { method: 'a' } }), { rpc: {} })
  })

  t.test('the official client stays connected', async (t) => {
    const edge = await start(t)
    backend.on('connect', { result: { user: '7', expire_at: inSeconds(100) } })
    backend.on('refresh', { result: { expire_at: inSeconds(200) } })
    const client = await connectClient(officialClient(t, edge, 'websocket', { getToken: null }))
    await nextRefresh(edge, 101_000)
    await client.rpc('a', 1)
    const ended = event(client, 'connecting')
    backend.on('refresh', { result: { expired: true } })
    edge.advance(100_000)
    t.match(await ended, { code: 3005 })
  })

  t.test('a client that was told its expiry refreshes itself after a reload that adds the proxy', async (t) => {
    const edge = await startRelay(t, proxiedFile(backend))
    const client = await openCodecClient(t, 'json', edge.url)
    const token = (lifetimeSeconds: number): string => relayToken({ sub: '1' }, { lifetimeSeconds })
    t.match(await client.request({ id: 1, connect: { token: token(100) } }), {
      connect: { expires: true, ttl: Number }
    })
    edge.running.configure(configOf(proxiedFile(backend, {}, withRefreshProxy(backend))))
    const { refresh } = await client.request({ id: 2, refresh: { token: token(200) } })
    t.notOk('ttl' in Object(refresh), 'the backend refreshes from now on')
    backend.on('refresh', { result: { expire_at: inSeconds(900) } })
    await nextRefresh(edge, 201_000)
  })

  t.test('a reload that removes the proxy closes an expired connection', async (t) => {
    const edge = await start(t)
    const client = await connected(t, edge)
    edge.running.configure(configOf(proxiedFile(backend)))
    edge.advance(101_000)
    t.equal(await client.closed, '3005 connection expired')
    t.same(backend.of('refresh'), [])
  })
})

t.test('sub_refresh', async (t) => {
  const backend = await startEventBackend(t)
  t.beforeEach(() => backend.reset())
  const start = (t: Test, client: Json = {}): Promise<EdgeRelay> => startRelay(t, proxiedFile(backend, {}, client))
  /** A client whose subscription expires in 100 seconds. */
  const subscribed = async (t: Test, edge: EdgeRelay, channel = 'lease:1'): Promise<CodecClient> => {
    backend.on('subscribe', { result: { expire_at: inSeconds(100), info: { seat: 1 } } })
    const client = await connectedWithToken(t, 'json', edge.url)
    const { subscribe } = await client.request({ id: 2, subscribe: { channel } })
    t.notOk('expires' in Object(subscribe) || 'ttl' in Object(subscribe), 'the client does not refresh')
    return client
  }
  const nextRefresh = async (edge: EdgeRelay, afterMs: number): Promise<void> => {
    const asked = backend.next('sub_refresh')
    edge.advance(afterMs)
    await asked
  }

  t.test('the backend prolongs a subscription', async (t) => {
    const edge = await start(t, RARE_PINGS)
    const client = await subscribed(t, edge)
    backend.on('sub_refresh', { result: { expire_at: inSeconds(300), info: { seat: 2 } } })
    await nextRefresh(edge, 101_000)
    t.match(backend.of('sub_refresh')[0]?.body, { user: '42', channel: 'lease:1', client: String })
    await client.request({ id: 3, rpc: { method: 'a' } })
    edge.advance(100_000)
    t.equal(backend.of('sub_refresh').length, 1)
    await nextRefresh(edge, 100_000)
  })

  t.test('a subscription without a new expiry never expires again', async (t) => {
    const edge = await start(t, RARE_PINGS)
    const client = await subscribed(t, edge)
    backend.on('sub_refresh', { result: {} })
    await nextRefresh(edge, 101_000)
    await client.request({ id: 3, rpc: { method: 'a' } })
    edge.advance(1_000_000)
    await edge.publish('lease:1', 'x')
    t.match(await client.next(), { push: { pub: { data: 'x' } } })
    t.equal(backend.of('sub_refresh').length, 1)
  })

  t.test('these answers end the subscription with 2501', async (t) => {
    const answers: readonly Answer[] = [
      { result: { expired: true } },
      { result: { expire_at: inSeconds(-5) } },
      {},
      { error: { code: 1000, message: 'e' } }
    ]
    for (const answer of answers) {
      const edge = await start(t, RARE_PINGS)
      const client = await subscribed(t, edge)
      backend.on('sub_refresh', answer)
      edge.advance(101_000)
      t.match(
        await client.next(),
        { push: { channel: 'lease:1', unsubscribe: { code: 2501 } } },
        JSON.stringify(answer)
      )
      t.match(await client.request({ id: 3, rpc: { method: 'a' } }), { rpc: {} }, 'the connection remains')
    }
  })

  t.test('a failed call keeps the subscription for a minute', async (t) => {
    const edge = await start(t, RARE_PINGS)
    const client = await subscribed(t, edge)
    backend.on('sub_refresh', RESET)
    await nextRefresh(edge, 101_000)
    await client.request({ id: 3, rpc: { method: 'a' } })
    for (let n = 0; n < 5; n++) edge.advance(1000)
    t.equal(backend.of('sub_refresh').length, 1)
    backend.on('sub_refresh', { result: { expired: true } })
    await eventually(() => {
      edge.advance(RETRY_MS / 4)
      return backend.of('sub_refresh').length === 2
    })
    t.match(await client.next(), { push: { unsubscribe: { code: 2501 } } })
  })

  t.test('an answer does not touch a newer subscription to the same channel', async (t) => {
    const edge = await start(t, RARE_PINGS)
    const client = await subscribed(t, edge)
    const held = backend.hold('sub_refresh')
    edge.advance(101_000)
    await held.next()
    await client.request({ id: 3, unsubscribe: { channel: 'lease:1' } })
    backend.on('subscribe', {})
    await client.request({ id: 4, subscribe: { channel: 'lease:1' } })
    held.release({ result: { expired: true } })
    await eventually(() => backend.concurrency === 0)
    await client.request({ id: 5, rpc: { method: 'a' } })
    await edge.publish('lease:1', 'x')
    t.match(await client.next(), { push: { pub: { data: 'x' } } })
  })

  t.test('nothing is asked after unsubscribing', async (t) => {
    const edge = await start(t, RARE_PINGS)
    const client = await subscribed(t, edge)
    await client.request({ id: 3, unsubscribe: { channel: 'lease:1' } })
    edge.advance(200_000)
    await client.request({ id: 4, rpc: { method: 'a' } })
    t.same(backend.of('sub_refresh'), [])
  })

  t.test('a subscription with a token is refreshed by the backend, and its client cannot refresh it', async (t) => {
    const edge = await start(t, RARE_PINGS)
    const client = await connectedWithToken(t, 'json', edge.url)
    const token = relayToken({ sub: '42', channel: 'lease:t' }, { lifetimeSeconds: 100 })
    const { subscribe } = await client.request({ id: 2, subscribe: { channel: 'lease:t', token } })
    t.notOk('expires' in Object(subscribe))
    backend.on('sub_refresh', { result: { expire_at: inSeconds(900) } })
    await nextRefresh(edge, 101_000)
    client.send({ id: 3, sub_refresh: { channel: 'lease:t', token } })
    t.equal(await client.closed, '3501 bad request')
  })

  t.test('an expired server-side subscription closes the connection with 3006', async (t) => {
    const edge = await start(t, RARE_PINGS)
    const client = await connectedWithToken(t, 'json', edge.url)
    await edge.api('subscribe', { user: '42', channel: 'lease:api', expire_at: inSeconds(100) })
    t.match(await client.next(), { push: { subscribe: {} } })
    backend.on('sub_refresh', { result: { expired: true } })
    edge.advance(101_000)
    t.equal(await client.closed, '3006 subscription expired')
  })

  t.test('the official client keeps its subscription', async (t) => {
    const edge = await start(t, RARE_PINGS)
    backend.on('subscribe', { result: { expire_at: inSeconds(100) } })
    backend.on('sub_refresh', { result: { expire_at: inSeconds(200) } })
    const client = await connectClient(officialClient(t, edge, 'websocket'))
    const subscription = await subscribeTo(client, 'lease:1')
    await nextRefresh(edge, 101_000)
    await client.rpc('a', 1)
    const again = event(subscription, 'subscribing')
    backend.on('sub_refresh', { result: { expired: true } })
    edge.advance(100_000)
    t.match(await again, { code: 2501 })
  })

  t.test('clients answer pings while a subscription is refreshed', async (t) => {
    const edge = await start(t)
    const client = await subscribed(t, edge)
    const held = backend.hold('sub_refresh')
    edge.advance(101_000)
    await held.next()
    t.same(await client.next(), {})
    client.send({})
    held.release({ result: { expire_at: inSeconds(900) } })
    t.match(await client.request({ id: 3, rpc: { method: 'a' } }), { rpc: {} })
  })
})
