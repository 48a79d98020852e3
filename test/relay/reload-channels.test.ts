import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startEventBackend } from '../helper/event-backend.js'
import { eventually } from '../helper/eventually.js'
import type { Json } from '../helper/raw-client.js'
import type { ConfigFile } from '../helper/relay-rules.js'
import { selfSigned, startTlsEventBackend } from '../helper/tls-event-backend.js'
import { configOfFile, fileWith, merged, room } from './reload-fixture.js'
import {
  api,
  askedAfter,
  asking,
  BATCH,
  BATCHES,
  commanding,
  connected,
  connecting,
  type Effect,
  keysOf,
  LARGE_QUEUE,
  occupying,
  outcome,
  publishAll,
  publishing,
  remaining,
  resultOf,
  run,
  simultaneousCalls,
  startWorld,
  stateEvents,
  stoppedReader,
  subscribed,
  subscribing,
  testEffects
} from './reload-world.js'

// Options of channels and backends whose new value must reach channels, subscriptions and connection pools that exist already,
// at least one for each part of the relay that reads options. test/relay/reload-options.test.ts has all options.

/** Backends that are asked about events; the last part of the address is the name of the event. */
const BACKEND = await startEventBackend(t)
BACKEND.on('large', { result: { data: 'x'.repeat(100) } })
BACKEND.on('late', async () => {
  await delay(300)
  return {}
})
BACKEND.on('expiring', () => ({ result: { expire_at: Math.floor(Date.now() / 1000) + 60 } }))
const [ONE, TWO] = [BACKEND.endpoint('one'), BACKEND.endpoint('two')]

const HISTORY = { history_size: 10, history_ttl: '300s' }
const OPEN = { allow_subscribe_for_client: true }
const MAP = room({ ...OPEN, subscription_type: 'map', map: { mode: 'recoverable', key_ttl: '60s' } })
const ANONYMOUS = { client: { allow_anonymous_connect_without_token: true } }
const NAMED: ConfigFile = { proxies: [{ name: 'one', endpoint: ONE }] }
/** Methods without a namespace are sent to a named proxy. */
const CALLS = merged(NAMED, { rpc: { without_namespace: { proxy_enabled: true, proxy_name: 'one' } } })
const callsTo = (endpoint: string, options: Json = {}): ConfigFile =>
  merged(CALLS, { proxies: [{ endpoint, ...options }] })
const RPC_ROOM = { rpc: { proxy: { endpoint: TWO }, namespaces: [{ name: 'room', proxy_enabled: true }] } }
const KEYS = await selfSigned(t.testdir(), 'backend.example')
const TLS = { http: { tls: { enabled: true, server_ca_pem: KEYS.cert, server_name: 'backend.example' } } }
/** Notifies the backend `two`. */
const NOTIFYING = merged(room({ ...OPEN, presence: true, state_proxy_enabled: true }), {
  channel: { proxy: { state: { endpoint: TWO } } }
})
/** The proxies of a namespace, by event. */
const asksTwo = (event: string, options: Json): ConfigFile =>
  merged(merged(NAMED, room({ [`${event}_proxy_enabled`]: true, ...options })), {
    channel: { proxy: { subscribe: { endpoint: BACKEND.endpoint('expiring') }, [event]: { endpoint: TWO } } }
  })

const EFFECTS: Readonly<Record<string, Effect>> = {
  // Channels
  'channel.max_length': {
    values: [10, 255],
    also: room(OPEN),
    see: subscribing(`room:${'x'.repeat(50)}`),
    seen: [107, 'ok']
  },
  // Before, it is a channel of an unknown namespace; after, one of "room" that needs a token.
  'channel.private_prefix': { values: ['$', '%'], also: room(OPEN), see: subscribing('%room:1'), seen: [102, 103] },
  'channel.namespace_boundary': { values: [':', '.'], see: publishing('other:1'), seen: [102, 'ok'] },
  'channel.user_boundary': {
    values: ['#', '~'],
    also: room({ ...OPEN, allow_user_limited_channels: true }),
    see: subscribing('room:1#7'),
    seen: [103, 'ok']
  },
  'channel.user_separator': {
    values: [',', '|'],
    also: room({ allow_user_limited_channels: true }),
    see: subscribing('room:1#42|7'),
    seen: [103, 'ok']
  },
  'channel.namespaces[].name': { values: ['one', 'two'], see: publishing('two:1'), seen: [102, 'ok'] },
  'channel.namespaces[].channel_regex': {
    values: ['^[a-z0-9]+$', '^other$'],
    also: room(OPEN),
    see: subscribing('room:1'),
    seen: ['ok', 107]
  },
  'channel.namespaces[].schema': {
    values: [undefined, 'PositionBatch'],
    also: room({}),
    see: publishing('room:1', { not: 'a batch' }),
    seen: ['ok', 107]
  },
  'channel.without_namespace.allow_subscribe_for_client': {
    values: [false, true],
    see: subscribing('plain'),
    seen: [103, 'ok']
  },
  'channel.namespaces[].allow_subscribe_for_client': {
    values: [false, true],
    see: subscribing('room:1'),
    seen: [103, 'ok']
  },
  'channel.namespaces[].allow_presence_for_anonymous': {
    values: [false, true],
    also: merged(room({ presence: true, allow_presence_for_client: true }), ANONYMOUS),
    see: commanding('presence', { channel: 'room:1' }, ''),
    seen: [103, 'ok']
  },
  'channel.namespaces[].allow_history_for_anonymous': {
    values: [false, true],
    also: merged(room({ ...HISTORY, allow_history_for_client: true }), ANONYMOUS),
    see: commanding('history', { channel: 'room:1' }, ''),
    seen: [103, 'ok']
  },
  'channel.namespaces[].allow_publish_for_subscriber': {
    values: [false, true],
    also: room(OPEN),
    see: async (world) => {
      const existing = await connected(world)
      await run(existing, 'subscribe', { channel: 'room:1' })
      return () => outcome(existing, 'publish', { channel: 'room:1', data: 1 })
    },
    seen: [103, 'ok']
  },
  'channel.namespaces[].history_size': {
    values: [1, 3],
    also: room({ history_ttl: '300s' }),
    see: async (world) => async () => {
      await publishAll(world, 'room:1', 5)
      return (await api(world, 'history', { channel: 'room:1', limit: 100 })).publications.length
    },
    seen: [1, 3]
  },
  'channel.history_meta_ttl': {
    values: ['5s', '600s'],
    also: room({ history_size: 5, history_ttl: '1s' }),
    see: async (world) => async () => {
      const { epoch } = await world.publish('room:1', 1)
      world.advance(60_000)
      return (await world.publish('room:1', 2)).epoch === epoch ? 'kept' : 'forgotten'
    },
    seen: ['forgotten', 'kept']
  },
  'channel.namespaces[].force_recovery_mode': {
    values: ['stream', 'cache'],
    also: room({ ...HISTORY, ...OPEN, force_recovery: true }),
    see: async (world) => {
      const existing = await connected(world)
      const { epoch } = await world.publish('room:1', 1)
      return async () => {
        await publishAll(world, 'room:1', 2)
        const request = { channel: 'room:1', recover: true, offset: 0, epoch }
        return (await resultOf(existing, 'subscribe', request)).publications?.length
      }
    },
    seen: [3, 1]
  },
  'channel.namespaces[].delta_publish': {
    values: [false, true],
    also: room({ ...HISTORY, ...OPEN, force_recovery: true, allowed_delta_types: ['fossil'] }),
    see: async (world) => {
      const existing = await subscribed(world, { delta: 'fossil' })
      return async () => {
        for (const n of [2, 3]) await world.publish('room:1', { n, filler: 'x'.repeat(500) })
        await existing.next()
        return (await existing.next()).push?.pub?.delta ?? false
      }
    },
    seen: [false, true]
  },
  'channel.namespaces[].conflate': {
    values: [undefined, 'data[].id'],
    also: merged(room(OPEN), LARGE_QUEUE),
    see: async (world) => {
      const existing = await stoppedReader(world)
      return async () => {
        await publishAll(world, 'room:1', BATCHES, BATCH)
        return (await remaining(world, existing)).length === BATCHES + 1 ? 'all' : 'merged'
      }
    },
    seen: ['all', 'merged']
  },
  'channel.namespaces[].entry_time': {
    values: [undefined, 'time'],
    also: merged(room({ ...OPEN, conflate: 'data[].id' }), LARGE_QUEUE),
    see: async (world) => {
      const existing = await stoppedReader(world)
      return async () => {
        await publishAll(world, 'room:1', BATCHES, BATCH)
        for (const time of [2, 1]) await world.publish('room:1', { data: [{ id: 'late', time }] })
        const texts = (await remaining(world, existing)).map((data) => JSON.stringify(data))
        return Number(/"id":"late","time":(\d+)/.exec(texts.findLast((text) => text.includes('"late"')) ?? '')?.[1])
      }
    },
    seen: [1, 2]
  },
  'channel.namespaces[].view_cell': {
    values: [10, 5],
    also: room({ ...HISTORY, ...OPEN, conflate: 'data[].id', snapshot: true, view_x: 'x', view_y: 'y' }),
    see: async (world) => {
      const existing = await connected(world)
      return async () => {
        const result = await resultOf(existing, 'subscribe', {
          channel: 'room:1',
          data: { view: { x: 1, y: 1, w: 3, h: 3 } }
        })
        // The reply names the granted view.
        return (result.data as { view: { w: number } }).view.w
      }
    },
    seen: [10, 5]
  },
  'channel.namespaces[].map.mode': {
    values: ['recoverable', 'ephemeral'],
    also: room({ subscription_type: 'map', map: { key_ttl: '60s' } }),
    see: async (world) => async () =>
      (await api(world, 'map_publish', { channel: 'room:1', key: 'a', data: {} })).offset,
    seen: [1, undefined]
  },
  'channel.namespaces[].map.key_ttl': {
    values: ['60s', '1s'],
    also: MAP,
    see: async (world) => async () => {
      await api(world, 'map_publish', { channel: 'room:1', key: 'a', data: {} })
      world.advance(2000)
      await world.relay.maps.expire()
      return keysOf(world, 'room:1')
    },
    seen: [['a'], []]
  },
  'channel.namespaces[].map.allow_remove_for_anonymous': {
    values: [false, true],
    also: merged(merged(MAP, room({ map: { allow_remove_for_client: true } })), ANONYMOUS),
    see: commanding('publish', { channel: 'room:1', type: 1, key: 'k', removed: true }, ''),
    seen: [103, 'ok']
  },
  'channel.namespaces[].map_clients_presence_channel_prefix': {
    values: ['who:', 'who:x-'],
    also: merged(room(OPEN), {
      channel: {
        namespaces: [{}, { name: 'who', subscription_type: 'map_clients', map: { mode: 'ephemeral', key_ttl: '60s' } }]
      }
    }),
    see: async (world) => {
      const existing = await connected(world)
      return async () => {
        await resultOf(existing, 'subscribe', { channel: 'room:1' })
        return eventually(async () => {
          for (const prefix of ['who:', 'who:x-'])
            if ((await keysOf(world, `${prefix}room:1`)).length > 0) return prefix
          return null
        })
      }
    },
    seen: ['who:', 'who:x-']
  },

  // Backends
  'channel.namespaces[].subscribe_proxy_name': {
    values: ['default', 'one'],
    also: asksTwo('subscribe', {}),
    see: asking('subscribe', { channel: 'room:1' }),
    seen: ['two', 'one']
  },
  'channel.namespaces[].publish_proxy_name': {
    values: ['default', 'one'],
    also: asksTwo('publish', {}),
    see: asking('publish', { channel: 'room:1', data: 1 }),
    seen: ['two', 'one']
  },
  'channel.namespaces[].map.publish_proxy_name': {
    values: ['default', 'one'],
    also: merged(merged(NAMED, MAP), {
      channel: { proxy: { map_publish: { endpoint: TWO } }, namespaces: [{ map: { publish_proxy_enabled: true } }] }
    }),
    see: asking('publish', { channel: 'room:1', type: 1, key: 'k', data: 1 }),
    seen: ['two', 'one']
  },
  'channel.namespaces[].sub_refresh_proxy_name': {
    values: ['default', 'one'],
    also: asksTwo('sub_refresh', { subscribe_proxy_enabled: true }),
    see: async (world) => {
      await run(await connected(world), 'subscribe', { channel: 'room:1' })
      return () => askedAfter(world, 120_000)
    },
    seen: ['two', 'one']
  },
  'channel.namespaces[].state_proxy_name': {
    values: ['default', 'one'],
    also: merged(NAMED, NOTIFYING),
    see: async (world) => {
      const existing = await occupying(world)
      return async () => {
        await run(existing, 'unsubscribe', { channel: 'room:1' })
        return askedAfter(world, 10_000)
      }
    },
    seen: ['two', 'one']
  },
  'channel.namespaces[].state_events': {
    values: [['occupied'], ['vacated']],
    also: NOTIFYING,
    see: stateEvents(),
    seen: [['occupied'], ['vacated']]
  },
  'engine.redis.channel_state.vacated_event_delay': {
    values: ['1h', '1s'],
    also: NOTIFYING,
    see: stateEvents('occupied'),
    seen: [['occupied'], ['occupied', 'vacated']]
  },
  'client.proxy.connect.enabled': {
    values: [false, true],
    also: { client: { proxy: { connect: { endpoint: ONE } } } },
    see: connecting(async () => ''),
    seen: ['3501', 'ok']
  },
  'client.proxy.refresh.endpoint': {
    values: [ONE, TWO],
    also: { client: { proxy: { refresh: { enabled: true } } } },
    see: async (world) => {
      await connected(world)
      return () => askedAfter(world, 2 * 3_600_000)
    },
    seen: ['one', 'two']
  },
  'proxies[].endpoint': { values: [ONE, TWO], also: CALLS, see: asking('rpc', { method: 'x' }), seen: ['one', 'two'] },
  'proxies[].timeout': {
    values: ['10ms', '30s'],
    also: callsTo(BACKEND.endpoint('late')),
    see: commanding('rpc', { method: 'x' }),
    seen: [100, 'ok']
  },
  'proxies[].http.max_response_size': {
    values: [50, 500],
    also: callsTo(BACKEND.endpoint('large')),
    see: commanding('rpc', { method: 'x' }),
    seen: [100, 'ok']
  },
  'proxies[].http.signing_secret': {
    values: [undefined, 'a secret'],
    also: CALLS,
    see: asking('rpc', { method: 'x' }, ({ headers }) => headers['x-gatehouse-signature'] !== undefined),
    seen: [false, true]
  },
  'proxies[].http.tls.server_name': {
    values: ['other.example', 'backend.example'],
    also: callsTo(await startTlsEventBackend(t, KEYS), TLS),
    see: commanding('rpc', { method: 'x' }),
    seen: [100, 'ok']
  },
  'proxies[].http.tls.insecure_skip_verify': {
    values: [false, true],
    also: callsTo(await startTlsEventBackend(t, KEYS), { http: { tls: { enabled: true } } }),
    see: commanding('rpc', { method: 'x' }),
    seen: [100, 'ok']
  },
  'proxies[].max_inflight': {
    values: [1, 2],
    also: callsTo(ONE, { max_queue: 0 }),
    see: simultaneousCalls,
    seen: [1, 2]
  },
  'proxies[].max_queue': {
    values: [0, 1],
    also: callsTo(ONE, { max_inflight: 1 }),
    see: simultaneousCalls,
    seen: [1, 2]
  },
  'rpc.namespaces[].name': {
    values: ['room', 'hall'],
    also: { rpc: { proxy: { endpoint: TWO }, namespaces: [{ proxy_enabled: true }] } },
    see: commanding('rpc', { method: 'hall:x' }),
    seen: [104, 'ok']
  },
  'rpc.namespace_boundary': {
    values: [':', '/'],
    also: RPC_ROOM,
    see: commanding('rpc', { method: 'room/x' }),
    seen: [108, 'ok']
  }
}

testEffects(t, BACKEND, EFFECTS)

t.test('a reload with another conflate loses no queued publications of a slow client', async (t) => {
  const file = (conflate: Json): ConfigFile =>
    fileWith('node.name', 'x', merged(room({ ...OPEN, ...conflate }), LARGE_QUEUE))
  const world = await startWorld(t, BACKEND, file({ conflate: 'data[].id' }))
  const existing = await stoppedReader(world)
  await publishAll(world, 'room:1', BATCHES, BATCH)
  await world.publish('room:1', { data: [{ id: 'only once', n: 1 }] })
  t.not(world.relay.clients[0]?.subscriptions.get('room:1')?.backlog, null, 'publications are queued')
  for (const conflate of [{ conflate: 'data[].n' }, {}]) world.running.configure(configOfFile(file(conflate)))
  const all = await remaining(world, existing)
  t.ok(all.length < BATCHES)
  t.ok(JSON.stringify(all).includes('only once'))
})
