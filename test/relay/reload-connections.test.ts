import t from 'tap'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { Operator } from '../helper/admin.js'
import { startEventBackend } from '../helper/event-backend.js'
import { send } from '../helper/http.js'
import { newSigningKey, publicJwk, signToken, startJwksServer } from '../helper/jwks-server.js'
import { openClient } from '../helper/raw-client.js'
import { API_KEY, type ConfigFile, HMAC_SECRET } from '../helper/relay-rules.js'
import { required } from '../helper/required.js'
import { configOfFile, fileWith, merged, room } from './reload-fixture.js'
import {
  after,
  apiStatus,
  BATCH,
  BATCHES,
  commanding,
  connected,
  connecting,
  type Effect,
  limit,
  outcome,
  publishAll,
  resultOf,
  run,
  startWorld,
  status,
  stoppedReader,
  subscribed,
  testEffects,
  token,
  UNI_REQUEST,
  upgradeStatus
} from './reload-world.js'

// Options whose new value must reach connections and timers that exist already, at least one for each part of the relay that
// reads options. test/relay/reload-options.test.ts has all options.

const BACKEND = await startEventBackend(t)
const PASSWORD = 'a password for operators'
const EC = newSigningKey('ES256')
const JWKS = await startJwksServer(t)
JWKS.serve(await publicJwk(EC))

const HISTORY = { history_size: 10, history_ttl: '300s' }
const OPEN = { allow_subscribe_for_client: true }
const POSITIONED = room({ ...HISTORY, ...OPEN, force_positioning: true })
const INTERNAL = { http_server: { internal_port: 0 }, admin: { enabled: true, password: PASSWORD } }
const EFFECTS: Readonly<Record<string, Effect>> = {
  // Tokens and origins
  'client.insecure': { values: [false, true], see: connecting(async () => ''), seen: ['3501', 'ok'] },
  'client.allowed_origins': {
    values: [['https://one.example'], ['https://two.example']],
    see: async (world) => () => upgradeStatus(world, { origin: 'https://two.example' }),
    seen: [403, 101]
  },
  'client.token.hmac_secret_key': {
    values: ['the secret before that one', 'another secret'],
    see: connecting(async () => token({ sub: '42' }, 'another secret')),
    seen: ['3500', 'ok']
  },
  'client.token.jwks_public_endpoint': {
    values: [undefined, JWKS.url],
    see: connecting(() => signToken(EC, { sub: '42' })),
    seen: ['3500', 'ok']
  },
  'client.subscription_token.enabled': {
    values: [false, true],
    also: merged(room({}), { client: { subscription_token: { hmac_secret_key: 'another key' } } }),
    see: commanding('subscribe', { channel: 'room:1', token: token({ sub: '42', channel: 'room:1' }, 'another key') }),
    seen: [103, 'ok']
  },
  'client.user_tokens_invalidate.ttl': {
    values: ['1s', '1h'],
    also: { client: { user_tokens_invalidate: { enabled: true } } },
    see: async (world) => async () => {
      // The clock of the relay stands still. Therefore a token of now may be of a later second.
      const nowMs = Date.now() - 60_000
      const older = signJwt({ sub: '42' }, secretKey(HMAC_SECRET), { lifetimeSeconds: 3600, nowMs })
      await world.api('invalidate_user_tokens', { user: '42' })
      world.advance(60_000)
      await world.api('invalidate_user_tokens', { user: 'other' })
      return outcome(await openClient(world.t, world.url), 'connect', { token: older })
    },
    seen: ['ok', 109]
  },

  // Limits and timers of connections
  'client.connection_limit': limit(503),
  'client.connection_rate_limit': limit(503, 1, 0),
  'client.connections_per_address': limit(429),
  'client.user_connection_limit': {
    values: [1, 2],
    see: async (world) => {
      await connected(world)
      return connecting(async () => token({ sub: '42' }))(world)
    },
    seen: ['3504', 'ok']
  },
  'client.pong_timeout': { values: ['8s', '20s'], see: after([26_000, 10_000], connected), seen: ['3012', 'open'] },
  'client.stale_close_delay': {
    values: ['5s', '600s'],
    see: async (world) => {
      const existing = await openClient(world.t, world.url)
      return async () => {
        world.advance(10_000)
        return outcome(existing, 'connect', { token: token({ sub: '42' }) })
      }
    },
    seen: ['3502', 'ok']
  },
  'client.expired_close_delay': {
    values: ['5s', '600s'],
    see: after([120_000], (world) => connected(world, token({ sub: '42' }, HMAC_SECRET, 60))),
    seen: ['3005', 'open']
  },
  'client.expired_sub_close_delay': {
    values: ['5s', '600s'],
    also: room({}),
    see: async (world) => {
      await subscribed(world, { token: token({ sub: '42', channel: 'room:1' }, HMAC_SECRET, 60) })
      return async () => {
        world.advance(120_000)
        return world.relay.stats().subscriptions
      }
    },
    seen: [0, 1]
  },
  'client.queue_max_size': {
    values: [65_536, 64 * 1024 * 1024],
    also: room(OPEN),
    see: async (world) => {
      await stoppedReader(world)
      return async () => {
        await publishAll(world, 'room:1', BATCHES, BATCH)
        return world.relay.stats().clients
      }
    },
    seen: [0, 1]
  },
  'client.channel_limit': {
    values: [1, 2],
    also: room(OPEN),
    see: async (world) => {
      const existing = await connected(world)
      await run(existing, 'subscribe', { channel: 'room:1' })
      return () => outcome(existing, 'subscribe', { channel: 'room:2' })
    },
    seen: [106, 'ok']
  },
  'client.command_limits': {
    values: [[{ commands: ['history'], by: 'client', rate: 1, interval: '1h' }], []],
    see: async (world) => {
      const existing = await connected(world)
      await run(existing, 'history', { channel: 'plain' })
      return () => run(existing, 'history', { channel: 'plain' })
    },
    seen: [111, 108]
  },
  'client.commands_per_second': {
    values: [5, 0],
    see: async (world) => {
      const existing = await connected(world)
      return async () => {
        existing.send(
          ...Array.from({ length: 20 }, (_, index) => ({ id: index + 1, presence_stats: { channel: 'room:1' } }))
        )
        return (await after([], async () => existing)(world))()
      }
    },
    seen: ['3013', 'open']
  },
  'client.concurrency': {
    values: [1, 2],
    also: room({ presence: true, allow_presence_for_client: true }),
    see: async (world) => {
      const existing = await connected(world)
      return async () => {
        existing.send(...[1, 2].map((id) => ({ id, presence_stats: { channel: `room:${id}` } })))
        for (let replies = 0; replies < 2; replies++) await existing.next()
        return world.presenceReads.most
      }
    },
    seen: [1, 2]
  },
  'client.channel_position_check_delay': {
    values: ['10s', '600s'],
    also: POSITIONED,
    see: async (world) => {
      await subscribed(world)
      world.relay.tick()
      return async () => {
        world.reads.count = 0
        world.advance(20_000)
        return world.reads.count
      }
    },
    seen: [1, 0]
  },
  'client.channel_position_max_time_lag': {
    values: ['0', '5s'],
    also: POSITIONED,
    see: async (world) => {
      const existing = await subscribed(world)
      return async () => {
        world.engineLag.ms = 10_000
        await world.publish('room:1', 1)
        return Object.keys(required((await existing.next()).push))
      }
    },
    seen: [
      ['channel', 'pub'],
      ['channel', 'unsubscribe']
    ]
  },
  'client.connect_include_server_time': {
    values: [false, true],
    see:
      async ({ t, url }) =>
      async () =>
        typeof (await resultOf(await openClient(t, url), 'connect', { token: token({ sub: '42' }) })).time,
    seen: ['undefined', 'number']
  },

  // The API, the transports and the server
  'http_api.key': { values: ['the key before that one', API_KEY], see: apiStatus('info', {}), seen: [401, 200] },
  'http_api.insecure': { values: [false, true], see: apiStatus('info', {}, 'no key'), seen: [401, 200] },
  'http_api.external': { values: [false, true], also: INTERNAL, see: status('/api'), seen: [404, 401] },
  'http_api.error_mode': {
    values: ['default', 'transport'],
    see: apiStatus('publish', { channel: 'unknown:1', data: 1 }),
    seen: [200, 404]
  },
  'http_api.max_body_size': {
    values: [20, 2000],
    also: room({}),
    see: apiStatus('publish', { channel: 'room:1', data: 'x'.repeat(100) }),
    seen: [413, 200]
  },
  'admin.external': { values: [false, true], also: INTERNAL, see: status('/admin'), seen: [404, 200] },
  'admin.password': {
    values: ['another password', PASSWORD],
    also: { admin: { enabled: true } },
    see: async (world) => async () => (await new Operator(world).signIn(PASSWORD)).status,
    seen: [401, 204]
  },
  'uni_sse.enabled': { values: [false, true], see: status('/connection/uni_sse', UNI_REQUEST), seen: [404, 200] },
  'uni_sse.max_request_body_size': {
    values: [10, 100],
    also: { uni_sse: { enabled: true } },
    see: status('/connection/uni_sse', UNI_REQUEST),
    seen: [413, 200]
  },
  'uni_http_stream.enabled': {
    values: [false, true],
    see: status('/connection/uni_http_stream', UNI_REQUEST),
    seen: [404, 200]
  },
  'uni_http_stream.max_request_body_size': {
    values: [10, 100],
    also: { uni_http_stream: { enabled: true } },
    see: status('/connection/uni_http_stream', UNI_REQUEST),
    seen: [413, 200]
  },
  'uni_websocket.enabled': { values: [false, true], see: status('/connection/uni_websocket', ''), seen: [404, 426] },
  'sse.enabled': { values: [true, false], see: status('/connection/sse', ''), seen: [200, 404] },
  'http_stream.enabled': { values: [true, false], see: status('/connection/http_stream', ''), seen: [200, 404] },
  'sse.max_request_body_size': {
    values: [10, 100],
    see: status('/connection/sse', '{"id":1,"connect":{}}'),
    seen: [413, 200]
  },
  'http_stream.max_request_body_size': {
    values: [10, 100],
    see: status('/connection/http_stream', '{"id":1,"connect":{}}'),
    seen: [413, 200]
  },
  'emulation.max_request_body_size': {
    values: [10, 100],
    see: status('/emulation', '{"session":"s","node":"n","data":"{}"}'),
    seen: [413, 404]
  },
  'health.enabled': { values: [true, false], see: status('/health'), seen: [200, 404] },
  'prometheus.enabled': { values: [true, false], see: status('/metrics'), seen: [200, 404] },
  'prometheus.instrument_http_handlers': {
    values: [false, true],
    see:
      async ({ url }) =>
      async () => {
        await send(url, '/health')
        return (await send(url, '/metrics')).body.includes('centrifugo_node_incoming_http_requests_total{')
      },
    seen: [false, true]
  },
  'shutdown.timeout': {
    values: ['60s', '0s'],
    see: async (world) => {
      for (let n = 0; n < 40; n++) await openClient(world.t, world.url)
      return async () => {
        void world.running.close()
        return world.relay.stats().clients > 0 ? 'over a while' : 'at once'
      }
    },
    seen: ['over a while', 'at once']
  }
}

testEffects(t, BACKEND, EFFECTS)

t.test('a reload keeps the ping interval of connected clients', async (t) => {
  const file = (interval: string): ConfigFile => fileWith('client.ping_interval', interval)
  const world = await startWorld(t, BACKEND, file('10s'))
  const existing = await connected(world)
  world.running.configure(configOfFile(file('60s')))
  for (let pings = 0; pings < 3; pings++) {
    world.advance(10_000)
    t.same(await existing.next(), {}, 'a ping')
    existing.send('{}')
    // The reply to a later command means that the relay has read the pong.
    await run(existing, 'presence_stats', { channel: 'room:1' })
  }
})
