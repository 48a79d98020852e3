import t, { type Test } from 'tap'
import { type EventBackend, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { startRedis } from '../../helper/redis.js'
import { connectClient, event, officialClient, startRelay } from '../../helper/relay.js'
import type { ConfigFile } from '../../helper/relay-rules.js'
import { startWorkers } from '../../helper/relay-workers.js'
import { type CodecClient, inSeconds, openCodecClient, proxiedFile, withRefreshProxy } from './fixture.js'

/** Addresses of the relay. With workers, each connection may be accepted by another process. */
type Start = (t: Test, file: ConfigFile) => Promise<readonly [string, string]>

const STARTS: Readonly<Record<string, Start>> = {
  'two workers': async (t, file) => {
    const { url } = await startWorkers(t, 2, file)
    return [url, url]
  },
  'two nodes on Redis': async (t, file) => {
    const redis = await startRedis(t)
    const env = { RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
    const [one, other] = await Promise.all([startRelay(t, file, env), startRelay(t, file, env)])
    return [one.url, other.url]
  }
}

/** Enough for every worker to have some. */
const CLIENTS = 8

const connectAs = async (t: Test, backend: EventBackend, url: string, user: string): Promise<CodecClient> => {
  const client = await openCodecClient(t, 'json', url, { headers: { cookie: `user=${user}` } })
  await client.request({ id: 1, connect: {} })
  t.ok(backend.of('connect').some(({ headers }) => headers.cookie === `user=${user}`))
  return client
}

for (const [name, start] of Object.entries(STARTS)) {
  t.test(name, async (t) => {
    const backend = await startEventBackend(t)
    const headers = { http_headers: ['cookie'] }
    const [url, otherUrl] = await start(t, proxiedFile(backend, headers, withRefreshProxy(backend, headers)))
    t.beforeEach(() => {
      backend.reset()
      backend.on('connect', ({ headers: { cookie = '' } }) => ({ result: { user: cookie.replace('user=', '') } }))
    })

    t.test(`every client of ${name} is connected as the user of its own cookie`, async (t) => {
      const users = Array.from({ length: CLIENTS }, (_, index) => `u${index}`)
      const clients = await Promise.all(
        users.map((user, index) => connectAs(t, backend, index % 2 === 0 ? url : otherUrl, user))
      )
      for (const client of clients) await client.request({ id: 2, rpc: { method: 'who' } })
      t.same(
        backend
          .of('rpc')
          .map(({ body, headers: { cookie } }) => [body.user, cookie])
          .sort(),
        users.map((user) => [user, `user=${user}`])
      )
    })

    t.test(`a publication that the backend changed reaches all subscribers of ${name}`, async (t) => {
      backend.on('publish', { result: { data: { censored: true }, tags: { by: 'backend' } } })
      const subscribers = await Promise.all(
        Array.from({ length: CLIENTS }, (_, index) =>
          connectAs(t, backend, index % 2 === 0 ? url : otherUrl, `s${index}`)
        )
      )
      for (const client of subscribers) await client.request({ id: 2, subscribe: { channel: 'room:pub' } })
      t.equal(backend.of('subscribe').length, CLIENTS)
      const publisher = await connectAs(t, backend, otherUrl, 'p')
      t.match(await publisher.request({ id: 2, publish: { channel: 'room:pub', data: '"rude"' } }), { publish: {} })
      for (const client of subscribers)
        t.match(await client.next(), { push: { pub: { data: { censored: true }, info: { user: 'p' } } } })
    })

    t.test(`a refused client of ${name} receives nothing, and an aborted one leaves nothing`, async (t) => {
      backend.on('subscribe', { error: { code: 403, message: 'no' } })
      const client = await connectAs(t, backend, url, 'refused')
      t.match(await client.request({ id: 2, subscribe: { channel: 'room:closed' } }), { error: { code: 403 } })
      const held = backend.hold('subscribe')
      const leaving = await connectAs(t, backend, otherUrl, 'leaving')
      leaving.send({ id: 2, subscribe: { channel: 'room:closed' } })
      const request = await held.next()
      leaving.ws.terminate()
      await eventually(() => request.isAborted, { label: 'the request is aborted' })
      held.release({})
      backend.on('subscribe', {})
      const allowed = await connectAs(t, backend, otherUrl, 'allowed')
      await allowed.request({ id: 2, subscribe: { channel: 'room:closed' } })
      client.send({ id: 3, publish: { channel: 'room:closed', data: '1' } })
      t.match(await client.next(), { id: 3, publish: {} })
      t.match(await allowed.next(), { push: { pub: { data: 1 } } })
    })

    t.test(`connections and subscriptions of ${name} are prolonged and ended by the backend`, async (t) => {
      backend.on('connect', () => ({ result: { user: 'r', expire_at: inSeconds(4) } }))
      backend.on('subscribe', () => ({ result: { expire_at: inSeconds(4) } }))
      backend.on('refresh', () => ({ result: { expire_at: inSeconds(600) } }))
      backend.on('sub_refresh', { result: { expired: true } })
      const client = await openCodecClient(t, 'json', otherUrl)
      await client.request({ id: 1, connect: {} })
      await client.request({ id: 2, subscribe: { channel: 'lease:1' } })
      t.match(await client.next(), { push: { channel: 'lease:1', unsubscribe: { code: 2501 } } })
      await eventually(() => backend.of('refresh').length === 1)
      t.match(await client.request({ id: 3, rpc: { method: 'a' } }), { rpc: {} })
      t.match(backend.of('sub_refresh')[0]?.body, { user: 'r', channel: 'lease:1' })
    })

    t.test(`commands of SSE clients of ${name} that arrive elsewhere have the headers of the stream`, async (t) => {
      const [client, port] = [Number(new URL(url).port), Number(new URL(otherUrl).port)]
      const official = officialClient(t, { port: client }, 'sse', {
        getToken: null,
        emulationEndpoint: `http://127.0.0.1:${port}/emulation`
      })
      backend.on('connect', { result: { user: 'e' } })
      await connectClient(official)
      for (let call = 0; call < CLIENTS; call++) await official.rpc('a', call)
      t.same(new Set(backend.of('rpc').map(({ body }) => `${body.transport} ${body.user}`)), new Set(['sse e']))
    })
  })
}

t.test('a reload changes the proxies of all workers', async (t) => {
  const [before, after] = [await startEventBackend(t), await startEventBackend(t)]
  const relay = await startWorkers(t, 2, proxiedFile(before))
  const client = await connectClient(officialClient(t, relay, 'websocket', { getToken: null }))
  await client.rpc('a', 1)
  relay.configure(proxiedFile(after))
  relay.program.signal('SIGHUP')
  await relay.program.waitForLine('config reloaded')
  await client.rpc('b', 1)
  t.same([before.of('rpc').length, after.of('rpc').length], [1, 1])
  const others = await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const other = officialClient(t, relay, 'websocket', { getToken: null })
      const connected = event(other, 'connected')
      other.connect()
      return connected
    })
  )
  t.equal(others.length, CLIENTS)
  t.equal(before.of('connect').length, 1)
  t.equal((await send(relay.url, '/health')).status, 200)
})
