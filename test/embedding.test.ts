import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Centrifuge } from 'centrifuge'
import jwt from 'jsonwebtoken'
import t from 'tap'
import WebSocket from 'ws'
import { buildGateway, buildRelay, type GatewaySettings, type RelaySettings, SettingsError } from '../src/index.js'
import { defineRoutes, get, post, Type } from '../src/routes.js'
import { createLogger } from '../src/shared/logger.js'
import { portOf } from './helper/address.js'
import { send } from './helper/http.js'
import { startBackend } from './helper/recording-backend.js'

const logger = createLogger({ name: 'test', level: 'silent' })

const orders = defineRoutes({
  domain: 'orders',
  about: 'Orders',
  rows: [
    get('/api/orders', 'List orders'),
    post('/api/orders', 'Create an order', Type.Object({ item: Type.String() }))
  ]
})

t.test('a program embeds a gateway with route tables and settings by name', async (t) => {
  const backend = await startBackend(t)
  const config: GatewaySettings = {
    NODE_ENV: 'test',
    BACKEND_URL: backend.url,
    BACKEND_TIMEOUT_MS: 1000,
    GATEWAY_STRICT_PATHS: ['/api/reports', '/api/audit'],
    AUDIT_LOG_FILE: join(t.testdir({}), 'audit.jsonl')
  }
  const gateway = await buildGateway({ config, routes: [orders], logger })
  t.teardown(() => gateway.close())
  const url = await gateway.listen({ host: '127.0.0.1', port: 0 })
  const create = (body: string) =>
    send(url, '/api/orders', { method: 'POST', headers: { 'content-type': 'application/json' }, body })

  t.equal((await create('{"item":"chair"}')).status, 200)
  t.equal((await create('{}')).status, 400)
  t.equal(backend.requests.length, 1)
})

t.test('an embedded gateway reads the routes of a file', async (t) => {
  const folder = t.testdir({ 'openapi.json': JSON.stringify({ openapi: '3.1.0', paths: { '/orders': { get: {} } } }) })
  const config: GatewaySettings = {
    NODE_ENV: 'test',
    AUDIT_LOG_FILE: join(folder, 'audit.jsonl'),
    GATEWAY_UNKNOWN_PATHS: 'refuse'
  }
  const gateway = await buildGateway({ config, routes: join(folder, 'openapi.json'), logger })
  t.teardown(() => gateway.close())
  const url = await gateway.listen({ host: '127.0.0.1', port: 0 })

  t.equal((await send(url, '/api/zones')).status, 404)
  t.equal((await send(url, '/api/orders', { method: 'OPTIONS' })).status, 405)
})

t.test('an embedded gateway rejects invalid settings and tables with one line per error', async (t) => {
  await t.rejects(buildGateway({ config: {}, logger }), {
    errors: [/^NODE_ENV is required: set NODE_ENV=production, /]
  })
  // @ts-expect-error: settings have types
  const invalid: GatewaySettings = { BODY_LIMIT: 'much', LOG_LEVEL: 'loud', TRUST_PROXY: 'x' }
  await t.rejects(buildGateway({ config: { NODE_ENV: 'test', ...invalid }, logger }), {
    errors: [/^TRUST_PROXY must be/, /^BODY_LIMIT must be/, /^LOG_LEVEL must be/]
  })
  await t.rejects(buildGateway({ config: { SESSION_SECRET: ['a,b'] }, logger }), {
    errors: ['SESSION_SECRET must not have entries with a comma']
  })
  const misspelled: object = { BACKEND_URI: 'http://127.0.0.1:1' }
  await t.rejects(buildGateway({ config: misspelled, logger }), { errors: ['BACKEND_URI is not a setting'] })
  await t.rejects(buildGateway({ config: { NODE_ENV: 'test' }, routes: [orders, orders], logger }), {
    errors: [/^routes\[1\]: the domain "orders" exists already$/, /row 1/, /row 2/]
  })
  await t.rejects(buildGateway({ config: { GATEWAY_ROUTES: 'a.json' }, routes: [orders], logger }), {
    errors: ['GATEWAY_ROUTES and routes must not both be set']
  })
})

t.test('a program embeds a relay, which delivers publications to the official client', async (t) => {
  const config = { NODE_ENV: 'test', REALTIME_HMAC_SECRET: 'secret', REALTIME_API_KEY: 'key' } satisfies RelaySettings
  const namespaces = { orders: { allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s' } }
  const relay = await buildRelay({ config, namespaces, logger })
  relay.server.listen(0, '127.0.0.1')
  await once(relay.server, 'listening')
  const port = portOf(relay.server)
  const token = jwt.sign({ sub: 'u1' }, config.REALTIME_HMAC_SECRET, { expiresIn: 60 })
  const client = new Centrifuge(`ws://127.0.0.1:${port}/connection/websocket`, { token, websocket: WebSocket })
  const subscription = client.newSubscription('orders:42')
  const received = new Promise((resolve) => subscription.on('publication', resolve))
  const subscribed = new Promise((resolve) => subscription.on('subscribed', resolve))
  subscription.subscribe()
  client.connect()
  await subscribed
  await send(`http://127.0.0.1:${port}`, '/api/publish', {
    method: 'POST',
    headers: { 'x-api-key': config.REALTIME_API_KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ channel: 'orders:42', data: { hello: 'world' } })
  })

  t.match(await received, { data: { hello: 'world' } })
  client.disconnect()
  await relay.close()
  t.notOk(relay.server.listening)
})

t.test('an embedded relay with an internal port has a second server', async (t) => {
  const folder = t.testdir({ 'relay.json': JSON.stringify({ http_server: { internal_port: 9100 } }) })
  const config = {
    NODE_ENV: 'test',
    REALTIME_HMAC_SECRET: 'secret',
    REALTIME_API_KEY: 'key',
    RELAY_CONFIG: join(folder, 'relay.json')
  } satisfies RelaySettings
  const { server, internalServer, close } = await buildRelay({ config, logger })
  if (internalServer === null) throw new Error('no internal server')
  for (const each of [server, internalServer]) {
    each.listen(0, '127.0.0.1')
    await once(each, 'listening')
  }
  const status = async (port: number): Promise<number> => (await send(`http://127.0.0.1:${port}`, '/health')).status

  t.equal(await status(portOf(server)), 404)
  t.equal(await status(portOf(internalServer)), 200)
  await close()
  t.notOk(internalServer.listening)
})

t.test('an embedded relay rejects invalid namespaces by their name', async (t) => {
  const config = { NODE_ENV: 'test', REALTIME_HMAC_SECRET: 'secret', REALTIME_API_KEY: 'key' } satisfies RelaySettings
  const namespaces = { orders: { history_size: -1 }, 'a b': {} }
  await t.rejects(buildRelay({ config, namespaces, logger }), {
    errors: [/^namespaces\.orders\.history_size must be a whole number/, /^namespaces\.a b\.name must be/]
  })
  await t.rejects(
    buildRelay({ config: { ...config, RELAY_CONFIG: 'relay.json' }, namespaces: {}, logger }),
    new SettingsError(['RELAY_CONFIG and namespaces must not both be set'])
  )
})

t.test('an embedded relay rejects invalid settings and workers', async (t) => {
  await t.rejects(buildRelay({ config: {}, logger }), { errors: [/REALTIME_HMAC_SECRET/, /REALTIME_API_KEY/] })
  const config = {
    NODE_ENV: 'test',
    REALTIME_HMAC_SECRET: 'secret',
    REALTIME_API_KEY: 'key',
    RELAY_WORKERS: 2
  } satisfies RelaySettings
  await t.rejects(buildRelay({ config, logger }), { errors: [/^RELAY_WORKERS must be 1/] })
})

t.test('without Redis neither program loads the Redis client', async (t) => {
  const { server, close } = await buildRelay({
    config: { NODE_ENV: 'test', REALTIME_HMAC_SECRET: 'secret', REALTIME_API_KEY: 'key' },
    logger
  })
  t.ok(server)
  await close()
  const loaded = Object.keys(createRequire(import.meta.url).cache)
  t.ok(
    loaded.some((file) => file.includes('/node_modules/jsonwebtoken/')),
    'the cache lists loaded modules'
  )
  t.strictSame(
    loaded.filter((file) => file.includes('/node_modules/ioredis/')),
    []
  )
})
