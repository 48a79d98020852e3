import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import type { Child } from '../helper/child.js'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { connectedClient, type Json, openClient, type RawClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { type EdgeRelay, startRelay } from '../helper/relay.js'
import { API_KEY, HMAC_SECRET, relayToken } from '../helper/relay-rules.js'
import { startWorkers } from '../helper/relay-workers.js'
import type { ServerPush } from '../helper/server-message.js'
import { startTcpProxy } from '../helper/tcp-proxy.js'

const SUBSCRIPTIONS = 'gatehouse-relay-subscriptions'
const FILE = { channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true }] } }
const UNCONFIRMED = { error: { code: 100 } }
const CONFIRMED = { result: {} }

/** Two relays on one Redis. The second one is connected through a proxy that can break its connections. */
const setUp = async (t: Test) => {
  const redis = await startRedis(t)
  const proxy = await startTcpProxy(t, redis.port)
  const start = (port: number): Promise<EdgeRelay> =>
    startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: `redis://127.0.0.1:${port}` })
  const [caller, proxied] = [await start(redis.port), await start(proxy.port)]
  const call = async (method: string, request: object): Promise<Json> =>
    JSON.parse((await caller.api(method, { user: 'banned', ...request })).body)
  const raw = new Redis(redis.url)
  raw.on('error', () => undefined)
  t.teardown(() => raw.disconnect())
  return {
    redis,
    proxy,
    caller,
    proxied,
    call,
    raw,
    banned: await connectedClient(t, proxied.url, 'banned')
  }
}

const nextPush = async (client: RawClient, kind: string): Promise<ServerPush> => {
  for (;;) {
    const { push } = await client.next()
    if (push !== undefined && kind in push) return push
  }
}

t.test('a command is applied at a node whose subscriber connection is down', async (t) => {
  const { proxy, proxied, call, banned } = await setUp(t)
  await banned.request({ id: 2, subscribe: { channel: 'chat:1' } })
  proxy.block(SUBSCRIPTIONS)
  await eventually(async () => (await fetch(`${proxied.url}/health`)).status === 503)
  await call('unsubscribe', { channel: 'chat:1' })
  t.match(await nextPush(banned, 'unsubscribe'), { channel: 'chat:1' })
  await call('refresh', { expire_at: Math.floor(Date.now() / 1000) + 1000 })
  t.ok(await nextPush(banned, 'refresh'))
  await call('disconnect', {})
  t.equal(await banned.closed, '3503 force disconnect')
})

/** The connect command of a client whose server-side subscription waits for Redis. */
const CONNECTING = { id: 1, connect: { token: relayToken({ sub: 'banned', channels: ['chat:1'] }) } }

t.test('a confirmed command has been applied to a client whose connect command waits for a slow Redis', async (t) => {
  const { proxy, proxied, call } = await setUp(t)
  proxy.delay(500)
  const connecting = await openClient(t, proxied.url)
  connecting.send(CONNECTING)
  await eventually(() => proxied.relay.clients.some(({ state }) => state === 'connecting'))
  t.same(await call('disconnect', {}), CONFIRMED)
  t.same(
    proxied.relay.clients.map(({ user, state }) => [user, state]),
    []
  )
  t.equal(await connecting.closed, '3503 force disconnect')
  t.equal(proxied.relay.stats().channels, 0)
})

t.test('a confirmed command has been applied to a client that connects to a worker with a slow Redis', async (t) => {
  const redis = await startRedis(t)
  const proxy = await startTcpProxy(t, redis.port)
  const env = { RELAY_ENGINE: 'redis', REDIS_URL: `redis://127.0.0.1:${proxy.port}` }
  const relay = await startWorkers(t, 2, FILE, env)
  proxy.delay(300)
  const connecting = await Promise.all(Array.from({ length: 10 }, () => openClient(t, relay.url)))
  for (const client of connecting) client.send(CONNECTING)
  t.same(await relay.api('disconnect', { user: 'banned' }), {})
  for (const { closed } of connecting) t.equal(await closed, '3503 force disconnect')
})

t.test('a command that fails at a node is unconfirmed and is retried until it succeeds', async (t) => {
  const { proxy, proxied, call, banned } = await setUp(t)
  const unblock = proxy.block(SUBSCRIPTIONS)
  await eventually(async () => (await fetch(`${proxied.url}/health`)).status === 503)
  t.match(await call('subscribe', { channel: 'chat:1' }), UNCONFIRMED)
  unblock()
  t.match(await nextPush(banned, 'subscribe'), { channel: 'chat:1' })
})

t.test('a node that receives no messages, but sends heartbeats, disconnects a banned user', async (t) => {
  const { proxy, call, banned } = await setUp(t)
  proxy.stopForwarding(SUBSCRIPTIONS)
  await call('disconnect', {})
  t.equal(await banned.closed, '3503 force disconnect')
})

t.test(
  'a node without connection to Redis leaves a command unconfirmed and applies it after reconnecting',
  async (t) => {
    const { proxy, call, banned } = await setUp(t)
    const unblock = proxy.block('gatehouse-relay-')
    t.match(await call('disconnect', {}), UNCONFIRMED)
    t.equal(banned.ws.readyState, banned.ws.OPEN)
    unblock()
    t.equal(await banned.closed, '3503 force disconnect')
  }
)

t.test('a command during a Redis outage is applied at the other nodes when Redis is restored', async (t) => {
  const { redis, call, banned } = await setUp(t)
  await redis.kill()
  t.match(await call('disconnect', {}), UNCONFIRMED)
  await redis.restart()
  t.equal(await banned.closed, '3503 force disconnect')
})

t.test('an unconfirmed command is appended again after the command log was lost', async (t) => {
  const { proxy, call, raw, banned } = await setUp(t)
  const unblock = proxy.block('gatehouse-relay-')
  t.match(await call('disconnect', {}), UNCONFIRMED)
  await raw.flushall()
  unblock()
  t.equal(await banned.closed, '3503 force disconnect')
})

t.test('a command that arrives as a message, in the log and again is applied once', async (t) => {
  const { proxy, proxied, call, banned } = await setUp(t)
  const unblock = proxy.block(SUBSCRIPTIONS)
  await eventually(async () => (await fetch(`${proxied.url}/health`)).status === 503)
  const expireAt = Math.floor(Date.now() / 1000) + 1000
  const results = await Promise.all([
    call('refresh', { expire_at: expireAt }),
    call('refresh', { expire_at: expireAt })
  ])
  unblock()
  await eventually(async () => (await fetch(`${proxied.url}/health`)).status === 200)
  for (const _ of results) await nextPush(banned, 'refresh')
  // When this is confirmed, the earlier commands have been read from the log again.
  t.match(await call('unsubscribe', { channel: 'chat:1' }), CONFIRMED)
  await setTimeout(0)
  const later = banned.request({ id: 9, subscribe: { channel: 'chat:2' } })
  t.match(await later, { id: 9 }, 'no further refresh came before')
})

t.test('a node that missed dropped commands closes all its connections', async (t) => {
  const { proxy, caller, call, raw, banned: bystander } = await setUp(t)
  const other = await connectedClient(t, caller.url, 'other')
  const unblock = proxy.block('gatehouse-relay-')
  for (const user of ['one', 'another']) await call('disconnect', { user })
  await raw.xtrim('gatehouse!{all}commands:stream', 'MAXLEN', 1)
  unblock()
  t.equal(await bystander.closed, '3010 insufficient state')
  t.equal(other.ws.readyState, other.ws.OPEN)
})

t.test('a command does not wait for a node that has shut down', async (t) => {
  const { proxied, call } = await setUp(t)
  await proxied.running.close()
  t.match(await call('disconnect', {}), CONFIRMED)
})

t.test('a suspended relay', async (t) => {
  const redis = await startRedis(t)
  const start = async (t: Test): Promise<Child & { readonly url: string }> => {
    const port = await freePort()
    const program = await startProgram(t, 'dist/src/relay/main.js', {
      RELAY_PORT: String(port),
      RELAY_ENGINE: 'redis',
      REDIS_URL: redis.url,
      REALTIME_HMAC_SECRET: HMAC_SECRET,
      REALTIME_API_KEY: API_KEY
    })
    await program.waitForLine('listening at')
    return Object.assign(program, { url: `http://127.0.0.1:${port}` })
  }
  const [caller, frozen] = [await start(t), await start(t)]
  const disconnect = async (user: string): Promise<Json> => {
    const headers = { 'x-api-key': API_KEY }
    const body = JSON.stringify({ user })
    return JSON.parse((await send(caller.url, '/api/disconnect', { method: 'POST', body, headers })).body)
  }

  t.test(
    'a suspended relay leaves a command unconfirmed and disconnects the banned user when it continues',
    async (t) => {
      const banned = await connectedClient(t, frozen.url, 'banned')
      frozen.signal('SIGSTOP')
      t.match(await disconnect('banned'), UNCONFIRMED)
      frozen.signal('SIGCONT')
      t.equal(await banned.closed, '3503 force disconnect')
      await caller.waitForLine('command confirmed')
    }
  )

  t.test('a relay suspended for longer than its lease disconnects the banned user when it continues', async (t) => {
    const banned = await connectedClient(t, frozen.url, 'banned')
    frozen.signal('SIGSTOP')
    // The lease has ended when the relay counts as gone.
    await eventually(async () => !('error' in (await disconnect('somebody'))))
    t.match(await disconnect('banned'), CONFIRMED)
    frozen.signal('SIGCONT')
    t.equal(await banned.closed, '3503 force disconnect')
  })
})
