import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { relayOptions } from '../../scripts/lib/relay-options-docs.js'
import { newEpoch } from '../../src/relay/build-engine.js'
import { reloadConfigFile } from '../../src/relay/config/reload.js'
import type { History, Presence } from '../../src/relay/core/engine.js'
import { memoryEngine } from '../../src/relay/engine/memory.js'
import { isObject } from '../../src/shared/is-object.js'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { Operator } from '../helper/admin.js'
import { type EventRequest, RawAnswer, startEventBackend } from '../helper/event-backend.js'
import { eventually } from '../helper/eventually.js'
import { send } from '../helper/http.js'
import { newSigningKey, pemOf, publicJwk, type SigningKey, signToken, startJwksServer } from '../helper/jwks-server.js'
import { startProgram } from '../helper/program.js'
import { type Json, openClient, RawClient } from '../helper/raw-client.js'
import { type EdgeRelay, startRelay } from '../helper/relay.js'
import { API_KEY, type ConfigFile, configOf, HMAC_SECRET } from '../helper/relay-rules.js'
import { required } from '../helper/required.js'
import type { SubscribeResult } from '../helper/server-message.js'
import { selfSigned, startTlsEventBackend } from '../helper/tls-event-backend.js'

// Changes every option of the configuration file while a relay runs. A new option needs a row here: it takes effect for
// existing connections and channels, or it is listed in the log.

/** Empty, because the environment wins over the file. */
const NO_ENVIRONMENT = { REALTIME_HMAC_SECRET: '', REALTIME_API_KEY: '', RELAY_PORT: '' }

const PASSWORD = 'a password for operators'

const RSA = newSigningKey('RS256')
const EC = newSigningKey('ES256')
const ED = newSigningKey('EdDSA')
const JWKS = await startJwksServer(t)
JWKS.serve(await publicJwk(EC))

/** Backends that are asked about events; the last part of the address decides what they answer. */
const BACKEND = await startEventBackend(t)
BACKEND.on('missing', new RawAnswer(404))
BACKEND.on('large', { result: { data: 'x'.repeat(100) } })
BACKEND.on('late', async () => {
  await delay(300)
  return {}
})
BACKEND.on('expiring', () => ({ result: { expire_at: Math.floor(Date.now() / 1000) + 60 } }))

const KEYS = await selfSigned(t.testdir(), 'backend.example')
const TLS_ENDPOINT = await startTlsEventBackend(t, KEYS)

interface World extends EdgeRelay {
  readonly t: Test
  /** Number of reads of the history, also for position checks. */
  readonly reads: { count: number }
  /** The largest number of presence reads at the same time. */
  readonly presenceReads: { most: number }
  /** How late publications arrive from the engine. */
  readonly engineLag: { ms: number }
}

/** An option that takes effect at once. */
interface Effect {
  readonly before: unknown
  readonly after: unknown
  /** Further options of both files. */
  readonly also?: ConfigFile
  readonly see: (world: World) => Promise<() => Promise<unknown>>
  readonly was: unknown
  readonly is: unknown
}

/** An option that is listed in the log, or whose effect is tested with a process below. */
interface Listed {
  readonly before: unknown
  readonly after: unknown
  readonly also?: ConfigFile
  readonly listed: 'needsRestart' | 'needsReconnect' | 'process'
}

type Row = Effect | Listed | 'one value'

let lastId = 100

const closeCode = (closed: string): string => closed.slice(0, 4)

/** The result of a command, the code of its error, or the code that the connection was closed with. */
const run = async (client: RawClient, method: string, request: Json): Promise<SubscribeResult | number | string> => {
  const id = ++lastId
  client.send({ id, [method]: request })
  for (;;) {
    const message = await Promise.race([client.next(), client.closed])
    if (typeof message === 'string') return closeCode(message)
    if (message.id !== id) continue
    if (message.error !== undefined) return message.error.code
    const result = message[method]
    return isObject(result) ? result : {}
  }
}

/** The result of a command that succeeds. */
const resultOf = async (client: RawClient, method: string, request: Json): Promise<SubscribeResult> => {
  const result = await run(client, method, request)
  if (typeof result !== 'object') throw new Error(`${method} failed with ${result}`)
  return result
}

/** Like `run`, with 'ok' for any result. */
const outcome = async (client: RawClient, method: string, request: Json): Promise<number | string> => {
  const result = await run(client, method, request)
  return typeof result === 'object' ? 'ok' : result
}

const token = (claims: Json, secret = HMAC_SECRET, lifetimeSeconds = 3600): string =>
  signJwt(claims, secretKey(secret), { lifetimeSeconds })

const connected = async ({ t, url }: World, claims: Json = { sub: '42' }): Promise<RawClient> => {
  const client = await openClient(t, url)
  await run(client, 'connect', { token: token(claims) })
  return client
}

const anonymous = async ({ t, url }: World): Promise<RawClient> => {
  const client = await openClient(t, url)
  await run(client, 'connect', {})
  return client
}

const ANONYMOUS = { client: { allow_anonymous_connect_without_token: true } }

const upgradeStatus = ({ t, url }: World, options: object = {}): Promise<number> => {
  const { ws } = new RawClient(url, options)
  t.teardown(() => ws.terminate())
  return new Promise((resolve) => {
    ws.once('open', () => resolve(101))
    ws.once('unexpected-response', (request, response) => {
      request.destroy()
      resolve(response.statusCode ?? 0)
    })
  })
}

/** A new connection with this token, or none: 'ok', the code of an error, or the code of the close. */
const connecting =
  (text = ''): Effect['see'] =>
  async (world) =>
  async () =>
    outcome(await openClient(world.t, world.url), 'connect', text === '' ? {} : { token: text })

/** An endpoint that is switched on. */
const endpoint = (path: string, method = 'DELETE'): Effect => ({
  before: false,
  after: true,
  see:
    async ({ url }) =>
    async () =>
      (await send(url, path, { method })).status === 404,
  was: true,
  is: false
})

/** The status of a connect request of 20 bytes. Without a token, the stream ends at once. */
const uniStatus =
  (path: string): Effect['see'] =>
  async ({ url }) =>
  async () =>
    (await send(url, path, { method: 'POST', body: '{"name":"a display"}' })).status

const apiOutcome = async (world: World, method: string, request: object): Promise<number | string> => {
  const { body } = await world.api(method, request)
  return JSON.parse(body).error?.code ?? 'ok'
}

const publishing =
  (channel: string, data: unknown = 1): Effect['see'] =>
  async (world) =>
  () =>
    apiOutcome(world, 'publish', { channel, data })

/** Subscribes with an existing connection. */
const subscribing =
  (channel: string): Effect['see'] =>
  async (world) => {
    const existing = await connected(world)
    return () => outcome(existing, 'subscribe', { channel })
  }

/** The width of a view, and whether an entry is in it. */
const viewing =
  (channel: string): Effect['see'] =>
  async (world) => {
    const existing = await connected(world)
    return async () => {
      await world.publish(channel, { data: [{ id: 1, x: 4, y: 4, z: 99 }] })
      const result = await run(existing, 'subscribe', { channel, data: { view: { x: 1, y: 1, w: 3, h: 3 } } })
      await run(existing, 'unsubscribe', { channel })
      if (typeof result !== 'object') return result
      const { view } = result.data as { view: { w: number } }
      return [view.w, 'publications' in result]
    }
  }

const historyLength = async (world: World, channel: string): Promise<number> =>
  JSON.parse((await world.api('history', { channel, limit: 100 })).body).result.publications.length

const publishAll = async (world: World, channel: string, count: number, data: unknown = 1): Promise<void> => {
  for (let n = 0; n < count; n++) await world.publish(channel, data)
}

/** Waits until the client receives a publication: a subscription becomes active shortly after its reply. */
const received = async (world: World, client: RawClient, channel: string): Promise<void> => {
  await world.publish(channel, 0)
  while ((await client.next()).push === undefined);
}

// 12 MB, more than the buffers of a connection.
const BATCHES = 100
/** About 120 KB, all entries with the same keys. */
const BATCH = {
  data: Array.from({ length: 40 }, (_, index) => ({ id: `t${index}`, filler: 'x'.repeat(3000) }))
}

/** A subscriber that has stopped reading. */
const stoppedReader = async (world: World, channel: string): Promise<RawClient> => {
  const client = await connected(world)
  await run(client, 'subscribe', { channel })
  client.ws.pause()
  return client
}

const publicationsOf = async (client: RawClient, isLast: (data: unknown) => boolean): Promise<unknown[]> => {
  const all: unknown[] = []
  for (;;) {
    const { push } = await client.next()
    if (push?.pub === undefined) continue
    all.push(push.pub.data)
    if (isLast(push.pub.data)) return all
  }
}

const HISTORY = { history_size: 10, history_ttl: '300s' }
const VIEWED = { ...HISTORY, allow_subscribe_for_client: true, conflate: 'data[].id', snapshot: true }
const RECOVERY = { ...HISTORY, force_recovery: true, allow_subscribe_for_client: true }

/** A named proxy. */
const NAMED: ConfigFile = { proxies: [{ name: 'one', endpoint: BACKEND.endpoint('one') }] }
/** A named proxy that methods without a namespace are sent to. */
const CALLS: ConfigFile = { ...NAMED, rpc: { without_namespace: { proxy_enabled: true, proxy_name: 'one' } } }

const withEndpoint = (endpoint: string): ConfigFile => merged(CALLS, { proxies: [{ endpoint }] })

/** The outcome of a call. */
const calling =
  (method = 'x'): Effect['see'] =>
  async (world) => {
    const existing = await connected(world)
    return () => outcome(existing, 'rpc', { method })
  }

/** Observes the request of a call. */
const asking =
  (observe: (request: EventRequest) => unknown, method = 'x', claims: Json = { sub: '42' }): Effect['see'] =>
  async (world) => {
    const existing = await connected(world, claims)
    return async () => {
      await run(existing, 'rpc', { method, data: 1 })
      return observe(required(BACKEND.requests.at(-1)))
    }
  }

const event = ({ event: name }: EventRequest): string => name

/** The backend that is asked about a command. */
const askedAbout =
  (method: string, channel: string): Effect['see'] =>
  async (world) => {
    const existing = await connected(world)
    return async () => {
      await run(existing, method, { channel, data: 1 })
      return BACKEND.requests.at(-1)?.event
    }
  }

/** The backend that is asked after time has passed. */
const askedAfter = (world: World, ms: number): Promise<string> => {
  const before = BACKEND.requests.length
  world.advance(ms)
  return eventually(() => BACKEND.requests[before]?.event)
}

/** The backend that is asked when a subscription expires. */
function subscriptionExpiry(channel: string): Effect['see'] {
  return async (world) => {
    const existing = await connected(world)
    await run(existing, 'subscribe', { channel })
    return () => askedAfter(world, 120_000)
  }
}

/** Subscribes to a channel, and waits until the backend was notified that it is occupied. */
const occupying = async (world: World, channel: string): Promise<RawClient> => {
  const existing = await connected(world)
  const before = BACKEND.requests.length
  await run(existing, 'subscribe', { channel })
  await eventually(() => BACKEND.requests.length > before)
  return existing
}

/** The backend that is notified when a channel is vacated. */
const vacating =
  (channel: string): Effect['see'] =>
  async (world) => {
    const existing = await occupying(world, channel)
    return async () => {
      await run(existing, 'unsubscribe', { channel })
      return askedAfter(world, 10_000)
    }
  }

/** The types of the events after a channel was vacated and another one occupied, up to this one. */
const stateEvents =
  (channel: string, last?: string): Effect['see'] =>
  async (world) => {
    const existing = await occupying(world, channel)
    return async () => {
      const before = BACKEND.requests.length
      await run(existing, 'unsubscribe', { channel })
      world.advance(10_000)
      await run(existing, 'subscribe', { channel: `${channel}b` })
      return eventually(() => {
        const bodies = BACKEND.requests.slice(before).map(({ body }) => body.events)
        const types = bodies.flat().map((each) => (isObject(each) ? each.type : null))
        return types.length > 0 && (last === undefined || types.includes(last)) ? types.toSorted() : null
      })
    }
  }

/** A namespace that notifies the backend `two`. */
const NOTIFYING: Json = { presence: true, allow_subscribe_for_client: true, state_proxy_enabled: true }
const STATE_PROXY: ConfigFile = { channel: { proxy: { state: { endpoint: BACKEND.endpoint('two') } } } }

/** The switch of a proxy in a namespace, and its name. */
const proxySwitch = (
  method: 'subscribe' | 'publish',
  channel: string,
  fileWithOptions: (options: Json) => ConfigFile
): Record<string, Effect> => {
  const also = merged(NAMED, { channel: { proxy: { [method]: { endpoint: BACKEND.endpoint('two') } } } })
  return {
    [`${method}_proxy_enabled`]: {
      before: false,
      after: true,
      also: merged(also, fileWithOptions({})),
      see: async (world) => {
        const existing = await connected(world)
        return () => outcome(existing, method, { channel, data: 1 })
      },
      was: 103,
      is: 'ok'
    },
    [`${method}_proxy_name`]: {
      before: 'default',
      after: 'one',
      also: merged(also, fileWithOptions({ [`${method}_proxy_enabled`]: true })),
      see: askedAbout(method, channel),
      was: 'two',
      is: 'one'
    }
  }
}

/** How many of three simultaneous calls succeed. */
const simultaneousCalls: Effect['see'] = async (world) => {
  const clients = [await connected(world), await connected(world), await connected(world)]
  return async () => {
    const held = BACKEND.hold('one')
    const calls = clients.map((client) => outcome(client, 'rpc', { method: 'x' }))
    await held.next()
    // At least one is refused at once.
    await Promise.race(calls)
    held.release({})
    const outcomes = await Promise.all(calls)
    BACKEND.handlers.delete('one')
    return outcomes.filter((each) => each === 'ok').length
  }
}

/** The rows of a namespace; `fileWithOptions` puts its options into a file. */
const channelRows = (channel: string, fileWithOptions: (options: Json) => ConfigFile): Record<string, Row> => {
  const by = (also: Json = {}, more: ConfigFile = {}): { also: ConfigFile } => ({
    also: merged(fileWithOptions(also), more)
  })
  /** A flag that permits a command to a connected client. */
  const allows = (
    method: string,
    also: Json,
    client: (world: World) => Promise<RawClient>,
    { subscribed = false, more = {} } = {}
  ): Effect => ({
    before: false,
    after: true,
    ...by(also, more),
    see: async (world) => {
      const existing = await client(world)
      if (subscribed) await run(existing, 'subscribe', { channel })
      return () => outcome(existing, method, { channel, data: 1, limit: 1 })
    },
    was: 103,
    is: 'ok'
  })
  const negotiated = (after: unknown, also: Json = {}, before: unknown = false): Listed => ({
    before,
    after,
    ...by(also),
    listed: 'needsReconnect'
  })
  return {
    command_limits: {
      before: [{ commands: ['history'], by: 'client', rate: 1, interval: '1h' }],
      after: [],
      ...by(),
      see: async (world) => {
        const existing = await connected(world)
        await run(existing, 'history', { channel })
        return () => run(existing, 'history', { channel })
      },
      was: 111,
      is: 108
    },
    presence: negotiated(true),
    join_leave: negotiated(true),
    force_push_join_leave: negotiated(true, { join_leave: true }),
    force_recovery: negotiated(true, HISTORY),
    allow_recovery: negotiated(true, HISTORY),
    force_positioning: negotiated(true, HISTORY),
    allow_positioning: negotiated(true, HISTORY),
    allowed_delta_types: negotiated(['fossil'], {}, []),
    history_size: {
      before: 1,
      after: 3,
      ...by({ history_ttl: '300s' }),
      see: async (world) => async () => {
        await publishAll(world, channel, 5)
        return historyLength(world, channel)
      },
      was: 1,
      is: 3
    },
    history_ttl: {
      before: '1s',
      after: '600s',
      ...by({ history_size: 5 }),
      see: async (world) => async () => {
        await world.publish(channel, 1)
        world.advance(60_000)
        return historyLength(world, channel)
      },
      was: 0,
      is: 1
    },
    history_meta_ttl: metaTtl(channel, by({ history_size: 5, history_ttl: '1s' })),
    force_recovery_mode: {
      before: 'stream',
      after: 'cache',
      ...by(RECOVERY),
      see: async (world) => {
        const existing = await connected(world)
        const { epoch } = await world.publish(channel, 1)
        return async () => {
          await publishAll(world, channel, 2)
          const result = await resultOf(existing, 'subscribe', { channel, recover: true, offset: 0, epoch })
          return result.publications?.length
        }
      },
      was: 3,
      is: 1
    },
    auto_cache_recover: {
      before: false,
      after: true,
      ...by({ ...RECOVERY, force_recovery_mode: 'cache' }),
      see: async (world) => {
        const existing = await connected(world)
        await world.publish(channel, 1)
        return async () => {
          const { publications = [] } = await resultOf(existing, 'subscribe', { channel })
          return publications.length
        }
      },
      was: 0,
      is: 1
    },
    allow_subscribe_for_client: allows('subscribe', {}, connected),
    allow_subscribe_for_anonymous: allows('subscribe', { allow_subscribe_for_client: true }, anonymous, {
      more: ANONYMOUS
    }),
    allow_publish_for_client: allows('publish', {}, connected),
    allow_publish_for_subscriber: allows('publish', { allow_subscribe_for_client: true }, connected, {
      subscribed: true
    }),
    allow_publish_for_anonymous: allows('publish', { allow_publish_for_client: true }, anonymous, { more: ANONYMOUS }),
    allow_presence_for_client: allows('presence', { presence: true }, connected),
    allow_presence_for_subscriber: allows('presence', { presence: true, allow_subscribe_for_client: true }, connected, {
      subscribed: true
    }),
    allow_presence_for_anonymous: allows('presence', { presence: true, allow_presence_for_client: true }, anonymous, {
      more: ANONYMOUS
    }),
    allow_history_for_client: allows('history', HISTORY, connected),
    allow_history_for_subscriber: allows('history', { ...HISTORY, allow_subscribe_for_client: true }, connected, {
      subscribed: true
    }),
    allow_history_for_anonymous: allows('history', { ...HISTORY, allow_history_for_client: true }, anonymous, {
      more: ANONYMOUS
    }),
    delta_publish: {
      before: false,
      after: true,
      ...by({ ...RECOVERY, allowed_delta_types: ['fossil'] }),
      see: async (world) => {
        const existing = await connected(world)
        await run(existing, 'subscribe', { channel, delta: 'fossil' })
        await received(world, existing, channel)
        return async () => {
          const publish = async (n: number): Promise<unknown> => {
            await world.publish(channel, { n, filler: 'x'.repeat(500) })
            return (await existing.next()).push?.pub?.delta ?? false
          }
          await publish(2)
          return publish(3)
        }
      },
      was: false,
      is: true
    },
    allow_tags_filter: {
      before: false,
      after: true,
      ...by({ allow_subscribe_for_client: true }),
      see: async (world) => {
        const existing = await connected(world)
        return () => outcome(existing, 'subscribe', { channel, tf: { key: 'cell', cmp: 'ex' } })
      },
      was: 107,
      is: 'ok'
    },
    allow_user_limited_channels: {
      before: false,
      after: true,
      ...by(),
      see: subscribing(`${channel}#42`),
      was: 103,
      is: 'ok'
    },
    channel_regex: {
      before: '^[a-z0-9]+$',
      after: '^other$',
      ...by({ allow_subscribe_for_client: true }),
      see: subscribing(channel),
      was: 'ok',
      is: 107
    },
    ...proxySwitch('subscribe', channel, fileWithOptions),
    ...proxySwitch('publish', channel, fileWithOptions),
    sub_refresh_proxy_enabled: {
      before: false,
      after: true,
      ...by({}, { channel: { proxy: { sub_refresh: { endpoint: BACKEND.endpoint('one') } } } }),
      listed: 'needsReconnect'
    },
    sub_refresh_proxy_name: {
      before: 'default',
      after: 'one',
      ...by(
        { subscribe_proxy_enabled: true, sub_refresh_proxy_enabled: true },
        merged(NAMED, {
          channel: {
            proxy: {
              subscribe: { endpoint: BACKEND.endpoint('expiring') },
              sub_refresh: { endpoint: BACKEND.endpoint('two') }
            }
          }
        })
      ),
      see: subscriptionExpiry(channel),
      was: 'two',
      is: 'one'
    },
    // test/relay/webhooks/webhooks.test.ts
    state_proxy_enabled: { before: false, after: true, ...by({ presence: true }, STATE_PROXY), listed: 'process' },
    state_proxy_name: {
      before: 'default',
      after: 'one',
      ...by(NOTIFYING, merged(NAMED, STATE_PROXY)),
      see: vacating(channel),
      was: 'two',
      is: 'one'
    },
    state_events: {
      before: ['occupied'],
      after: ['vacated'],
      ...by(NOTIFYING, STATE_PROXY),
      see: stateEvents(channel),
      was: ['occupied'],
      is: ['vacated']
    },
    conflate: {
      before: undefined,
      after: 'data[].id',
      ...by({ allow_subscribe_for_client: true }, { client: { queue_max_size: 64 * 1024 * 1024 } }),
      see: async (world) => {
        const existing = await stoppedReader(world, channel)
        return async () => {
          await publishAll(world, channel, BATCHES, BATCH)
          await world.publish(channel, { last: true })
          existing.ws.resume()
          const all = await publicationsOf(existing, (data) => isDeepStrictEqual(data, { last: true }))
          return all.length === BATCHES + 1 ? 'all' : 'merged'
        }
      },
      was: 'all',
      is: 'merged'
    },
    entry_time: {
      before: undefined,
      after: 'time',
      ...by(
        { allow_subscribe_for_client: true, conflate: 'data[].id' },
        { client: { queue_max_size: 64 * 1024 * 1024 } }
      ),
      see: async (world) => {
        const existing = await stoppedReader(world, channel)
        return async () => {
          await publishAll(world, channel, BATCHES, BATCH)
          for (const time of [2, 1]) await world.publish(channel, { data: [{ id: 'late', time }] })
          await world.publish(channel, { last: true })
          existing.ws.resume()
          const all = await publicationsOf(existing, (data) => isDeepStrictEqual(data, { last: true }))
          // The newest publication with this entry; its other entries have no time.
          const late = all.map((data) => JSON.stringify(data)).findLast((text) => text.includes('"late"'))
          return Number(/"id":"late","time":(\d+)/.exec(late ?? '')?.[1])
        }
      },
      was: 1,
      is: 2
    },
    snapshot: {
      before: false,
      after: true,
      ...by({ ...HISTORY, allow_subscribe_for_client: true, conflate: 'data[].id' }),
      see: async (world) => {
        const existing = await connected(world)
        return async () => {
          await world.publish(channel, { data: [{ id: 1 }] })
          const result = await run(existing, 'subscribe', { channel })
          return typeof result === 'object' && 'publications' in result
        }
      },
      was: false,
      is: true
    },
    allow_max_rate: {
      before: false,
      after: true,
      ...by({ allow_subscribe_for_client: true, conflate: 'data[].id' }),
      see: async (world) => {
        const existing = await connected(world)
        return async () => {
          const result = await run(existing, 'subscribe', { channel, data: { max_rate: 3 } })
          return typeof result === 'object' ? result.data : result
        }
      },
      was: undefined,
      is: { max_rate: 2 }
    },
    view_x: {
      before: 'x',
      after: 'z',
      ...by({ ...VIEWED, view_y: 'y', view_cell: 10 }),
      see: viewing(channel),
      was: [10, true],
      is: [10, false]
    },
    view_y: {
      before: 'x',
      after: 'z',
      ...by({ ...VIEWED, view_x: 'y', view_cell: 10 }),
      see: viewing(channel),
      was: [10, true],
      is: [10, false]
    },
    view_cell: {
      before: 10,
      after: 5,
      ...by({ ...VIEWED, view_x: 'x', view_y: 'y' }),
      see: viewing(channel),
      was: [10, true],
      is: [5, true]
    },
    publication_data_format: {
      before: 'json',
      after: 'json_object',
      ...by(),
      see: publishing(channel, 1),
      was: 'ok',
      is: 107
    },
    schema: {
      before: undefined,
      after: 'PositionBatch',
      ...by(),
      see: publishing(channel, { not: 'a batch' }),
      was: 'ok',
      is: 107
    },
    ...mapRows(channel, by)
  }
}

const MAP = { mode: 'recoverable', key_ttl: '60s', min_page_size: 1, default_page_size: 2 }

const mapApi = async ({ api }: World, method: string, params: Json): Promise<Json> => {
  const { error, result } = JSON.parse((await api(method, params)).body)
  return { code: error?.code, ...result }
}

const writeKeys = async (world: World, channel: string, keys: readonly string[]): Promise<Json> => {
  let last: Json = {}
  for (const key of keys) last = await mapApi(world, 'map_publish', { channel, key, data: {} })
  return last
}

const keysOf = async (world: World, channel: string): Promise<readonly string[]> => {
  const { entries } = await mapApi(world, 'map_read_state', { channel, limit: -1 })
  return ((entries ?? []) as readonly { key: string }[]).map(({ key }) => key)
}

/** The rows of maps, for a namespace with these options. */
const mapRows = (channel: string, by: (options: Json) => { also: ConfigFile }): Record<string, Row> => {
  const mapped = (map: Json = {}, more: Json = {}): { also: ConfigFile } =>
    by({ subscription_type: 'map', allow_subscribe_for_client: true, map: { ...MAP, ...map }, ...more })
  const writes = (more: Json, map: Json, client: typeof connected, subscribed = false, also = {}): Effect => ({
    before: false,
    after: true,
    also: merged(mapped(map).also, also),
    see: async (world) => {
      const existing = await client(world)
      if (subscribed) await resultOf(existing, 'subscribe', { channel, type: 1, phase: 2 })
      return () => outcome(existing, 'publish', { channel, type: 1, key: 'k', ...more })
    },
    was: 103,
    is: 'ok'
  })
  const permissions = (verb: string, more: Json): Record<string, Row> => ({
    [`map.allow_${verb}_for_client`]: writes(more, {}, connected),
    [`map.allow_${verb}_for_subscriber`]: writes(more, {}, connected, true),
    [`map.allow_${verb}_for_anonymous`]: writes(
      more,
      { [`allow_${verb}_for_client`]: true },
      anonymous,
      false,
      ANONYMOUS
    )
  })
  const pageOf = (map: Json, limit: number, before: number, after: number): Effect => ({
    before,
    after,
    ...mapped(map),
    see: async (world) => async () => {
      await writeKeys(world, channel, ['a', 'b', 'c', 'd', 'e'])
      const { state } = await resultOf(await connected(world), 'subscribe', { channel, type: 1, phase: 2, limit })
      return (state as readonly unknown[]).length
    },
    was: before,
    is: after
  })
  const streamLength = (before: unknown, after: unknown, was: number, is: number): Effect => ({
    before,
    after,
    ...mapped(),
    see: async (world) => async () => {
      await writeKeys(world, channel, ['a', 'b', 'c'])
      world.advance(2000)
      const { entries } = await mapApi(world, 'map_read_stream', { channel, limit: -1 })
      return ((entries ?? []) as readonly unknown[]).length
    },
    was,
    is
  })
  const presence = (type: string): Effect => {
    const who = { name: 'who', subscription_type: type, map: { mode: 'ephemeral', key_ttl: '60s' } }
    const namespaces = channel.startsWith('room:') ? [{ name: 'room' }, who] : [who]
    return {
      before: 'who:',
      after: 'who:x-',
      also: merged(by({ allow_subscribe_for_client: true }).also, { channel: { namespaces } }),
      see: async (world) => {
        const existing = await connected(world)
        return async () => {
          await resultOf(existing, 'subscribe', { channel })
          return eventually(async () => {
            for (const prefix of ['who:', 'who:x-'])
              if ((await keysOf(world, prefix + channel)).length > 0) return prefix
            return null
          })
        }
      },
      was: 'who:',
      is: 'who:x-'
    }
  }
  return {
    ...permissions('publish', { data: {} }),
    ...permissions('remove', { removed: true }),
    subscription_type: {
      before: 'map',
      after: 'map_clients',
      ...by({ allow_subscribe_for_client: true, map: MAP }),
      see: async (world) => {
        const existing = await connected(world)
        return () => outcome(existing, 'subscribe', { channel, type: 2, phase: 2 })
      },
      was: 103,
      is: 'ok'
    },
    map_clients_presence_channel_prefix: presence('map_clients'),
    map_users_presence_channel_prefix: presence('map_users'),
    'map.mode': {
      before: 'recoverable',
      after: 'ephemeral',
      ...by({ subscription_type: 'map', map: { key_ttl: '60s' } }),
      see: async (world) => async () => (await writeKeys(world, channel, ['a'])).offset,
      was: 1,
      is: undefined
    },
    'map.key_ttl': {
      before: '60s',
      after: '1s',
      ...mapped(),
      see: async (world) => async () => {
        await writeKeys(world, channel, ['a'])
        world.advance(2000)
        await world.relay.maps.expire()
        return keysOf(world, channel)
      },
      was: ['a'],
      is: []
    },
    'map.stream_size': streamLength(1, 10, 1, 3),
    'map.stream_ttl': streamLength('1s', '100s', 0, 3),
    'map.meta_ttl': {
      before: '60s',
      after: '1000s',
      ...mapped(),
      see: async (world) => async () => {
        const { epoch } = await writeKeys(world, channel, ['a'])
        world.advance(100_000)
        return (await writeKeys(world, channel, ['b'])).epoch === epoch
      },
      was: false,
      is: true
    },
    'map.max_keys': {
      before: 1,
      after: 5,
      ...mapped(),
      see: async (world) => async () => (await writeKeys(world, channel, ['a', 'b'])).code,
      was: 106,
      is: undefined
    },
    'map.default_page_size': pageOf({}, 0, 1, 3),
    'map.min_page_size': pageOf({ default_page_size: 4 }, 1, 2, 4),
    'map.max_page_size': pageOf({}, 100, 2, 4),
    'map.live_transition_max_publication_limit': {
      before: 1,
      after: 10,
      ...mapped(),
      see: async (world) => {
        const existing = await connected(world)
        const { epoch, offset } = await writeKeys(world, channel, ['a'])
        return async () => {
          await writeKeys(world, channel, ['b', 'c', 'd'])
          return outcome(existing, 'subscribe', { channel, type: 1, phase: 1, recover: true, epoch, offset })
        }
      },
      was: 112,
      is: 'ok'
    },
    'map.subscribe_catch_up_timeout': {
      before: '1s',
      after: '100s',
      ...mapped(),
      see: async (world) => {
        const existing = await connected(world)
        return async () => {
          await writeKeys(world, channel, ['a', 'b', 'c'])
          const page = { channel, type: 1, phase: 2, limit: 1 }
          const { cursor, epoch, offset } = await resultOf(existing, 'subscribe', page)
          world.advance(2000)
          return outcome(existing, 'subscribe', { ...page, cursor, epoch, offset })
        }
      },
      was: '3008',
      is: 'ok'
    },
    'map.client_key': {
      before: 'client_id',
      after: 'user_id',
      ...mapped({ allow_publish_for_client: true }),
      see: async (world) => {
        const existing = await connected(world)
        return async () => {
          await resultOf(existing, 'publish', { channel, type: 1, key: 'k', data: {} })
          return (await keysOf(world, channel)).includes('42')
        }
      },
      was: false,
      is: true
    },
    'map.remove_client_on_unsubscribe': {
      before: false,
      after: true,
      ...mapped({ allow_publish_for_client: true, client_key: 'client_id' }),
      see: async (world) => {
        const existing = await connected(world)
        await resultOf(existing, 'subscribe', { channel, type: 1, phase: 2 })
        return async () => {
          await resultOf(existing, 'publish', { channel, type: 1, key: 'k', data: {} })
          await resultOf(existing, 'unsubscribe', { channel })
          return (await keysOf(world, channel)).length
        }
      },
      was: 1,
      is: 0
    }
  }
}

const metaTtl = (channel: string, also: { also: ConfigFile }): Effect => ({
  before: '5s',
  after: '600s',
  ...also,
  see: async (world) => async () => {
    const { epoch } = await world.publish(channel, 1)
    world.advance(60_000)
    return (await world.publish(channel, 2)).epoch === epoch ? 'kept' : 'forgotten'
  },
  was: 'forgotten',
  is: 'kept'
})

const room = (options: Json): ConfigFile => ({ channel: { namespaces: [{ name: 'room', ...options }] } })
const unnamed = (options: Json): ConfigFile => ({ channel: { without_namespace: options } })
const ROOM_OPEN = room({ allow_subscribe_for_client: true })

/** A limit on connections that an existing one uses up. */
const limitOf = (was: number, before = 1, after = 2): Effect => ({
  before,
  after,
  see: async (world) => {
    await openClient(world.t, world.url)
    return () => upgradeStatus(world)
  },
  was,
  is: 101
})

const isStillOpen = async (client: RawClient): Promise<string> => {
  const result = await outcome(client, 'presence_stats', { channel: 'room:open?' })
  return typeof result === 'number' ? 'open' : result
}

const CLIENT: Readonly<Record<string, Row>> = {
  insecure: { before: false, after: true, see: connecting(), was: '3501', is: 'ok' },
  allowed_origins: {
    before: ['https://one.example'],
    after: ['https://two.example'],
    see: async (world) => () => upgradeStatus(world, { origin: 'https://two.example' }),
    was: 403,
    is: 101
  },
  ...tokenRows('token'),
  'subscription_token.enabled': {
    before: false,
    after: true,
    also: merged(room({}), { client: { subscription_token: { hmac_secret_key: 'another key' } } }),
    see: presenting('subscription_token', async () => token({ sub: '42', channel: 'room:1' }, 'another key')),
    was: 103,
    is: 'ok'
  },
  ...tokenRows('subscription_token'),
  disallow_anonymous_connection_tokens: {
    before: true,
    after: false,
    see: connecting(token({})),
    was: '3507',
    is: 'ok'
  },
  allow_anonymous_connect_without_token: { before: false, after: true, see: connecting(), was: '3501', is: 'ok' },
  ping_interval: { before: '25s', after: '60s', listed: 'needsReconnect' },
  pong_timeout: {
    before: '8s',
    after: '20s',
    see: async (world) => {
      const existing = await connected(world)
      return async () => {
        world.advance(26_000)
        world.advance(10_000)
        return isStillOpen(existing)
      }
    },
    was: '3012',
    is: 'open'
  },
  stale_close_delay: {
    before: '5s',
    after: '600s',
    see: async (world) => {
      const existing = await openClient(world.t, world.url)
      return async () => {
        world.advance(10_000)
        return outcome(existing, 'connect', { token: token({ sub: '42' }) })
      }
    },
    was: '3502',
    is: 'ok'
  },
  expired_close_delay: {
    before: '5s',
    after: '600s',
    see: async (world) => {
      const existing = await openClient(world.t, world.url)
      await run(existing, 'connect', { token: token({ sub: '42' }, HMAC_SECRET, 60) })
      return async () => {
        world.advance(120_000)
        return isStillOpen(existing)
      }
    },
    was: '3005',
    is: 'open'
  },
  expired_sub_close_delay: {
    before: '5s',
    after: '600s',
    also: room({}),
    see: async (world) => {
      const existing = await connected(world)
      const channel = 'room:1'
      await run(existing, 'subscribe', { channel, token: token({ sub: '42', channel }, HMAC_SECRET, 60) })
      await received(world, existing, channel)
      return async () => {
        world.advance(120_000)
        return world.relay.stats().subscriptions
      }
    },
    was: 0,
    is: 1
  },
  queue_max_size: {
    before: 65_536,
    after: 64 * 1024 * 1024,
    also: ROOM_OPEN,
    see: async (world) => {
      await stoppedReader(world, 'room:1')
      return async () => {
        await publishAll(world, 'room:1', BATCHES, BATCH)
        return world.relay.stats().clients
      }
    },
    was: 0,
    is: 1
  },
  channel_limit: {
    before: 1,
    after: 2,
    also: ROOM_OPEN,
    see: async (world) => {
      const existing = await connected(world)
      await run(existing, 'subscribe', { channel: 'room:1' })
      return () => outcome(existing, 'subscribe', { channel: 'room:2' })
    },
    was: 106,
    is: 'ok'
  },
  user_connection_limit: {
    before: 1,
    after: 2,
    see: async (world) => {
      await connected(world)
      return async () => outcome(await openClient(world.t, world.url), 'connect', { token: token({ sub: '42' }) })
    },
    was: '3504',
    is: 'ok'
  },
  connection_limit: limitOf(503),
  connection_rate_limit: limitOf(503, 1, 0),
  connections_per_address: limitOf(429),
  command_limits: {
    before: [{ commands: ['history'], by: 'client', rate: 1, interval: '1h' }],
    after: [],
    see: async (world) => {
      const existing = await connected(world)
      await run(existing, 'history', { channel: 'plain' })
      return () => run(existing, 'history', { channel: 'plain' })
    },
    was: 111,
    is: 108
  },
  'user_tokens_invalidate.enabled': {
    before: false,
    after: true,
    see: async (world) => async () =>
      JSON.parse((await world.api('invalidate_user_tokens', { user: 'ada' })).body).error?.code ?? 'done',
    was: 108,
    is: 'done'
  },
  'user_tokens_invalidate.ttl': {
    before: '1s',
    after: '1h',
    also: { client: { user_tokens_invalidate: { enabled: true } } },
    see: async (world) => async () => {
      // The clock of the relay stands still. Therefore a token of now may be of a later second.
      const older = signJwt({ sub: '42' }, secretKey(HMAC_SECRET), {
        lifetimeSeconds: 3600,
        nowMs: Date.now() - 60_000
      })
      await world.api('invalidate_user_tokens', { user: '42' })
      world.advance(60_000)
      await world.api('invalidate_user_tokens', { user: 'other' })
      return outcome(await openClient(world.t, world.url), 'connect', { token: older })
    },
    was: 'ok',
    is: 109
  },
  commands_per_second: {
    before: 5,
    after: 0,
    see: async (world) => {
      const existing = await connected(world)
      return async () => {
        const stats = { channel: 'room:1' }
        existing.send(...Array.from({ length: 20 }, () => ({ id: ++lastId, presence_stats: stats })))
        return isStillOpen(existing)
      }
    },
    was: '3013',
    is: 'open'
  },
  concurrency: {
    before: 1,
    after: 2,
    also: room({ presence: true, allow_presence_for_client: true }),
    see: async (world) => {
      const existing = await connected(world)
      return async () => {
        const commands = ['room:1', 'room:2'].map((channel) => ({ id: ++lastId, presence_stats: { channel } }))
        existing.send(...commands)
        for (const _ of commands) await existing.next()
        return world.presenceReads.most
      }
    },
    was: 1,
    is: 2
  },
  channel_position_check_delay: {
    before: '10s',
    after: '600s',
    also: room({ ...HISTORY, allow_subscribe_for_client: true, force_positioning: true }),
    see: async (world) => {
      const existing = await connected(world)
      await run(existing, 'subscribe', { channel: 'room:1' })
      await received(world, existing, 'room:1')
      world.relay.tick()
      return async () => {
        world.reads.count = 0
        world.advance(20_000)
        return world.reads.count
      }
    },
    was: 1,
    is: 0
  },
  channel_position_max_time_lag: {
    before: '0',
    after: '5s',
    also: room({ ...HISTORY, allow_subscribe_for_client: true, force_positioning: true }),
    see: async (world) => {
      const existing = await connected(world)
      await run(existing, 'subscribe', { channel: 'room:1' })
      await received(world, existing, 'room:1')
      return async () => {
        world.engineLag.ms = 10_000
        await world.publish('room:1', 1)
        return Object.keys(required((await existing.next()).push))
      }
    },
    was: ['channel', 'pub'],
    is: ['channel', 'unsubscribe']
  },
  history_max_publication_limit: {
    before: 1,
    after: 3,
    also: room({ ...HISTORY, allow_history_for_client: true }),
    see: async (world) => {
      const existing = await connected(world)
      await publishAll(world, 'room:1', 5)
      return async () => {
        const result = await resultOf(existing, 'history', { channel: 'room:1', limit: 5 })
        return result.publications?.length
      }
    },
    was: 1,
    is: 3
  },
  recovery_max_publication_limit: {
    before: 1,
    after: 10,
    also: room(RECOVERY),
    see: async (world) => {
      const existing = await connected(world)
      const { epoch } = await world.publish('room:1', 1)
      await publishAll(world, 'room:1', 4)
      return async () => {
        const result = await resultOf(existing, 'subscribe', { channel: 'room:1', recover: true, offset: 1, epoch })
        return result.recovered ?? false
      }
    },
    was: false,
    is: true
  },
  connect_include_server_time: {
    before: false,
    after: true,
    see: async (world) => async () => {
      const result = await resultOf(await openClient(world.t, world.url), 'connect', { token: token({ sub: '42' }) })
      return typeof result.time
    },
    was: 'undefined',
    is: 'number'
  },
  'subscribe_to_user_personal_channel.enabled': { before: false, after: true, listed: 'needsReconnect' },
  'subscribe_to_user_personal_channel.personal_channel_namespace': {
    before: 'one',
    after: 'two',
    also: { channel: { namespaces: [{ name: 'room' }, { name: 'one' }, { name: 'two' }] } },
    listed: 'needsReconnect'
  }
}

type TokenSection = 'token' | 'subscription_token'

/** Connects or subscribes with a token. */
function presenting(section: TokenSection, sign: () => Promise<string>): Effect['see'] {
  return async (world) => {
    const existing = await openClient(world.t, world.url)
    const isForChannel = section === 'subscription_token'
    if (isForChannel) await run(existing, 'connect', { token: token({ sub: '42' }) })
    return async () =>
      isForChannel
        ? outcome(existing, 'subscribe', { channel: 'room:1', token: await sign() })
        : outcome(existing, 'connect', { token: await sign() })
  }
}

/** The options of connection tokens, or of separate subscription tokens. */
function tokenRows(section: TokenSection): Record<string, Row> {
  const isForChannel = section === 'subscription_token'
  const channel = isForChannel ? { channel: 'room:1' } : {}
  const row = (
    before: unknown,
    after: unknown,
    sign: () => Promise<string>,
    { also = {}, was = isForChannel ? 103 : '3500' }: { also?: Json; was?: number | string } = {}
  ): Effect => {
    const common = isForChannel ? { enabled: true, hmac_secret_key: HMAC_SECRET } : {}
    return {
      before,
      after,
      also: merged(room({}), { client: { [section]: { ...common, ...also } } }),
      see: presenting(section, sign),
      was,
      is: 'ok'
    }
  }
  const hmac =
    (claims: Json, secret = HMAC_SECRET) =>
    async () =>
      token({ sub: '42', ...channel, ...claims }, secret)
  const signed = (key: SigningKey) => () => signToken(key, { sub: '42', ...channel })
  const rows: Record<string, Row> = {
    hmac_secret_key: row('the secret before that one', 'another secret', hmac({}, 'another secret')),
    hmac_previous_secret_key: row('an even older secret', 'an old secret', hmac({}, 'an old secret')),
    hmac_previous_secret_key_valid_until: row(1, 0, hmac({}, 'an old secret'), {
      also: { hmac_previous_secret_key: 'an old secret' }
    }),
    rsa_public_key: row(pemOf(newSigningKey('RS256')), pemOf(RSA), signed(RSA)),
    ecdsa_public_key: row(pemOf(newSigningKey('ES256')), pemOf(EC), signed(EC)),
    eddsa_public_key: row(pemOf(newSigningKey('EdDSA')), pemOf(ED), signed(ED)),
    jwks_public_endpoint: row(undefined, JWKS.url, signed(EC)),
    audience: row('one', 'two', hmac({ aud: 'two' })),
    audience_regex: row('^one$', '^two$', hmac({ aud: ['two'] })),
    issuer: row('one', 'two', hmac({ iss: 'two' })),
    issuer_regex: row('^one$', '^two$', hmac({ iss: 'two' })),
    user_id_claim: row('sub', 'uid', hmac({ sub: undefined, uid: '42' }), { was: isForChannel ? '3500' : '3507' }),
    expiry_required: row(true, false, async () => {
      const unsigned = [
        { alg: 'HS256', typ: 'JWT' },
        { sub: '42', ...channel }
      ]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.')
      return `${unsigned}.${createHmac('sha256', HMAC_SECRET).update(unsigned).digest('base64url')}`
    })
  }
  return prefixed(section, rows)
}

const CHANNEL: Readonly<Record<string, Row>> = {
  history_meta_ttl: metaTtl('room:1', { also: room({ history_size: 5, history_ttl: '1s' }) }),
  publication_data_format: {
    before: 'json',
    after: 'json_object',
    also: room({}),
    see: publishing('room:1', 1),
    was: 'ok',
    is: 107
  },
  max_length: {
    before: 10,
    after: 255,
    also: ROOM_OPEN,
    see: subscribing(`room:${'x'.repeat(50)}`),
    was: 107,
    is: 'ok'
  },
  private_prefix: {
    before: '$',
    after: '%',
    also: ROOM_OPEN,
    see: subscribing('%room:1'),
    // Before, it is a channel of an unknown namespace; after, one of "room" that needs a token.
    was: 102,
    is: 103
  },
  namespace_boundary: { before: ':', after: '.', see: publishing('other:1'), was: 102, is: 'ok' },
  user_boundary: {
    before: '#',
    after: '~',
    also: room({ allow_subscribe_for_client: true, allow_user_limited_channels: true }),
    see: subscribing('room:1#7'),
    was: 103,
    is: 'ok'
  },
  user_separator: {
    before: ',',
    after: '|',
    also: room({ allow_user_limited_channels: true }),
    see: subscribing('room:1#42|7'),
    was: 103,
    is: 'ok'
  },
  'namespaces[].name': { before: 'one', after: 'two', see: publishing('two:1'), was: 102, is: 'ok' }
}

const apiStatus =
  (method: string, request: object, key = API_KEY): Effect['see'] =>
  async (world) =>
  async () =>
    (await world.api(method, request, { headers: { 'x-api-key': key } })).status

function prefixed(prefix: string, rows: Readonly<Record<string, Row>>): Record<string, Row> {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [`${prefix}.${name}`, row]))
}

const restart = (before: unknown, after: unknown, also: ConfigFile = {}): Listed => ({
  before,
  after,
  also,
  listed: 'needsRestart'
})

const REDIS: ConfigFile = { engine: { type: 'redis' } }
const COMPRESSION: ConfigFile = { websocket: { compression: true } }
const UNI_COMPRESSION: ConfigFile = { uni_websocket: { compression: true } }

/** The status of a path where clients connect. */
const external = (path: string): Effect => ({
  before: false,
  after: true,
  also: { http_server: { internal_port: 0 }, admin: { enabled: true, password: PASSWORD } },
  see: async (world) => async () => (await send(world.url, path)).status === 404,
  was: true,
  is: false
})

const TLS_CALLS = merged(withEndpoint(TLS_ENDPOINT), {
  proxies: [{ http: { tls: { enabled: true, server_ca_pem: KEYS.cert, server_name: 'backend.example' } } }]
})

/** An option of TLS; without it, the backend is not trusted. */
const trusting = (before: unknown, after: unknown, also: ConfigFile): Effect => ({
  before,
  after,
  also,
  see: calling(),
  was: 100,
  is: 'ok'
})

const PROXY: Readonly<Record<string, Row>> = {
  // Changes together with the options that refer to it.
  name: 'one value',
  endpoint: {
    before: BACKEND.endpoint('one'),
    after: BACKEND.endpoint('two'),
    also: CALLS,
    see: asking(event),
    was: 'one',
    is: 'two'
  },
  timeout: {
    before: '10ms',
    after: '30s',
    also: withEndpoint(BACKEND.endpoint('late')),
    see: calling(),
    was: 100,
    is: 'ok'
  },
  http_headers: { before: [], after: ['cookie'], also: CALLS, listed: 'needsReconnect' },
  emulated_headers: { before: [], after: ['authorization'], also: CALLS, listed: 'needsReconnect' },
  binary_encoding: {
    before: false,
    after: true,
    also: CALLS,
    see: asking(({ body }) => body.b64data !== undefined),
    was: false,
    is: true
  },
  include_connection_meta: {
    before: false,
    after: true,
    also: CALLS,
    see: asking(({ body }) => body.meta, 'x', { sub: '42', meta: { role: 'admin' } }),
    was: undefined,
    is: { role: 'admin' }
  },
  'http.static_headers': {
    before: {},
    after: { 'X-Key': 'a' },
    also: CALLS,
    see: asking(({ headers }) => headers['x-key']),
    was: undefined,
    is: 'a'
  },
  'http.status_to_code_transforms': {
    before: [],
    after: [{ status_code: 404, to_error: { code: 1404 } }],
    also: withEndpoint(BACKEND.endpoint('missing')),
    see: calling(),
    was: 100,
    is: 1404
  },
  'http.tls.enabled': trusting(false, true, TLS_CALLS),
  'http.tls.server_ca_pem': trusting(undefined, KEYS.cert, withoutTls('server_ca_pem')),
  'http.tls.server_name': trusting('other.example', 'backend.example', TLS_CALLS),
  'http.tls.insecure_skip_verify': trusting(false, true, withoutTls('server_ca_pem')),
  // A certificate and its key change together.
  'http.tls.cert_pem': 'one value',
  'http.tls.key_pem': 'one value',
  'http.max_response_size': {
    before: 50,
    after: 500,
    also: withEndpoint(BACKEND.endpoint('large')),
    see: calling(),
    was: 100,
    is: 'ok'
  },
  'http.signing_secret': {
    before: undefined,
    after: 'a secret',
    also: CALLS,
    see: asking(({ headers }) => headers['x-gatehouse-signature'] !== undefined),
    was: false,
    is: true
  },
  'http.signing_secret_previous': {
    before: undefined,
    after: 'the old secret',
    also: merged(CALLS, { proxies: [{ http: { signing_secret: 'a secret' } }] }),
    see: asking(({ headers }) => String(headers['x-gatehouse-signature']).split(',v1=').length),
    was: 2,
    is: 3
  },
  max_inflight: {
    before: 1,
    after: 2,
    also: merged(CALLS, { proxies: [{ max_queue: 0 }] }),
    see: simultaneousCalls,
    was: 1,
    is: 2
  },
  max_queue: {
    before: 0,
    after: 1,
    also: merged(CALLS, { proxies: [{ max_inflight: 1 }] }),
    see: simultaneousCalls,
    was: 1,
    is: 2
  }
}

/** The file of `TLS_CALLS` without one option. */
function withoutTls(option: string): ConfigFile {
  const tls = { enabled: true, server_ca_pem: KEYS.cert, server_name: 'backend.example' }
  const rest = Object.fromEntries(Object.entries(tls).filter(([name]) => name !== option))
  return merged(withEndpoint(TLS_ENDPOINT), { proxies: [{ http: { tls: rest } }] })
}

/** The endpoint of a default proxy. */
const defaultEndpoint = (also: ConfigFile, see: Effect['see']): Effect => ({
  before: BACKEND.endpoint('one'),
  after: BACKEND.endpoint('two'),
  also,
  see,
  was: 'one',
  is: 'two'
})

const DEFAULT_PROXIES: Readonly<Record<string, Row>> = {
  'client.proxy.connect.enabled': {
    before: false,
    after: true,
    also: { client: { proxy: { connect: { endpoint: BACKEND.endpoint('one') } } } },
    see: connecting(),
    was: '3501',
    is: 'ok'
  },
  'client.proxy.connect.endpoint': defaultEndpoint(
    { client: { proxy: { connect: { enabled: true } } } },
    async (world) => async () => {
      await anonymous(world)
      return BACKEND.requests.at(-1)?.event
    }
  ),
  'client.proxy.refresh.enabled': {
    before: false,
    after: true,
    also: { client: { proxy: { refresh: { endpoint: BACKEND.endpoint('one') } } } },
    listed: 'needsReconnect'
  },
  'client.proxy.refresh.endpoint': defaultEndpoint(
    { client: { proxy: { refresh: { enabled: true } } } },
    async (world) => {
      await connected(world)
      return () => askedAfter(world, 2 * 3_600_000)
    }
  ),
  'channel.proxy.subscribe.endpoint': defaultEndpoint(
    room({ subscribe_proxy_enabled: true }),
    askedAbout('subscribe', 'room:1')
  ),
  'channel.proxy.publish.endpoint': defaultEndpoint(
    room({ publish_proxy_enabled: true }),
    askedAbout('publish', 'room:1')
  ),
  'channel.proxy.sub_refresh.endpoint': defaultEndpoint(
    merged(room({ subscribe_proxy_enabled: true, sub_refresh_proxy_enabled: true }), {
      channel: { proxy: { subscribe: { endpoint: BACKEND.endpoint('expiring') } } }
    }),
    subscriptionExpiry('room:1')
  ),
  'channel.proxy.state.endpoint': defaultEndpoint(room(NOTIFYING), vacating('room:1')),
  'rpc.proxy.endpoint': defaultEndpoint({ rpc: { without_namespace: { proxy_enabled: true } } }, asking(event))
}

const RPC_DEFAULT: ConfigFile = { rpc: { proxy: { endpoint: BACKEND.endpoint('two') } } }

const RPC: Readonly<Record<string, Row>> = {
  'without_namespace.proxy_enabled': {
    before: false,
    after: true,
    also: RPC_DEFAULT,
    see: calling(),
    was: 108,
    is: 'ok'
  },
  'without_namespace.proxy_name': {
    before: 'default',
    after: 'one',
    also: merged(CALLS, RPC_DEFAULT),
    see: asking(event),
    was: 'two',
    is: 'one'
  },
  'namespaces[].name': {
    before: 'room',
    after: 'hall',
    also: merged(RPC_DEFAULT, { rpc: { namespaces: [{ proxy_enabled: true }] } }),
    see: calling('hall:x'),
    was: 104,
    is: 'ok'
  },
  'namespaces[].proxy_enabled': {
    before: false,
    after: true,
    also: merged(RPC_DEFAULT, { rpc: { without_namespace: { proxy_enabled: true } } }),
    see: calling('room:x'),
    was: 108,
    is: 'ok'
  },
  'namespaces[].proxy_name': {
    before: 'default',
    after: 'one',
    also: merged(merged(NAMED, RPC_DEFAULT), { rpc: { namespaces: [{ name: 'room', proxy_enabled: true }] } }),
    see: asking(event, 'room:x'),
    was: 'two',
    is: 'one'
  },
  namespace_boundary: {
    before: ':',
    after: '/',
    also: merged(RPC_DEFAULT, { rpc: { namespaces: [{ name: 'room', proxy_enabled: true }] } }),
    see: calling('room/x'),
    was: 108,
    is: 'ok'
  }
}

const OPTIONS: Readonly<Record<string, Row>> = {
  // For editors only.
  $schema: 'one value',
  'map_broker.type': 'one value',
  'http_server.address': restart('127.0.0.1', '127.0.0.2'),
  'http_server.port': restart(8101, 8102),
  'http_server.internal_address': {
    ...restart('127.0.0.1', '127.0.0.2'),
    also: { http_server: { internal_port: 0 } }
  },
  'http_server.internal_port': restart(0, 8103),
  'log.file': restart('/dev/null', '/dev/zero'),
  'log.level': { before: 'info', after: 'debug', listed: 'process' },
  ...prefixed('client', CLIENT),
  ...DEFAULT_PROXIES,
  ...prefixed('rpc', RPC),
  ...prefixed('proxies[]', PROXY),
  ...prefixed('channel', CHANNEL),
  ...prefixed('channel.without_namespace', channelRows('plain', unnamed)),
  ...prefixed('channel.namespaces[]', channelRows('room:1', room)),
  'http_api.key': { before: 'the key before that one', after: API_KEY, see: apiStatus('info', {}), was: 401, is: 200 },
  'http_api.insecure': { before: false, after: true, see: apiStatus('info', {}, 'no key'), was: 401, is: 200 },
  'http_api.external': external('/api'),
  'http_api.error_mode': {
    before: 'default',
    after: 'transport',
    see: apiStatus('publish', { channel: 'unknown:1', data: 1 }),
    was: 200,
    is: 404
  },
  'http_api.max_body_size': {
    before: 20,
    after: 2000,
    also: room({}),
    see: apiStatus('publish', { channel: 'room:1', data: 'x'.repeat(100) }),
    was: 413,
    is: 200
  },
  'websocket.compression': { before: false, after: true, listed: 'needsReconnect' },
  'websocket.compression_min_size': { before: 0, after: 200, also: COMPRESSION, listed: 'needsReconnect' },
  'websocket.compression_level': { before: 1, after: 6, also: COMPRESSION, listed: 'needsReconnect' },
  'websocket.decompressed_message_size_limit': {
    before: 65_536,
    after: 131_072,
    also: COMPRESSION,
    listed: 'needsReconnect'
  },
  'websocket.message_size_limit': { before: 65_536, after: 131_072, listed: 'needsReconnect' },
  'uni_sse.enabled': { before: false, after: true, see: uniStatus('/connection/uni_sse'), was: 404, is: 200 },
  'uni_sse.max_request_body_size': {
    before: 10,
    after: 100,
    also: { uni_sse: { enabled: true } },
    see: uniStatus('/connection/uni_sse'),
    was: 413,
    is: 200
  },
  'uni_http_stream.enabled': {
    before: false,
    after: true,
    see: uniStatus('/connection/uni_http_stream'),
    was: 404,
    is: 200
  },
  'uni_http_stream.max_request_body_size': {
    before: 10,
    after: 100,
    also: { uni_http_stream: { enabled: true } },
    see: uniStatus('/connection/uni_http_stream'),
    was: 413,
    is: 200
  },
  'uni_websocket.enabled': {
    before: false,
    after: true,
    see: uniStatus('/connection/uni_websocket'),
    was: 404,
    is: 426
  },
  'uni_websocket.message_size_limit': { before: 65_536, after: 131_072, listed: 'needsReconnect' },
  'uni_websocket.disable_disconnect_push': { before: false, after: true, listed: 'needsReconnect' },
  'uni_websocket.compression': { before: false, after: true, listed: 'needsReconnect' },
  'uni_websocket.compression_min_size': { before: 0, after: 200, also: UNI_COMPRESSION, listed: 'needsReconnect' },
  'uni_websocket.compression_level': { before: 1, after: 6, also: UNI_COMPRESSION, listed: 'needsReconnect' },
  'uni_websocket.decompressed_message_size_limit': {
    before: 65_536,
    after: 131_072,
    also: UNI_COMPRESSION,
    listed: 'needsReconnect'
  },
  'engine.type': restart('memory', 'redis', { engine: { redis: { address: 'redis://127.0.0.1:1' } } }),
  'engine.redis.address': restart('redis://127.0.0.1:1', 'redis://127.0.0.1:2', REDIS),
  'engine.redis.prefix': restart('one', 'two', REDIS),
  'engine.redis.presence_ttl': restart('60s', '30s', REDIS),
  'engine.redis.channel_state.vacated_event_delay': {
    before: '1h',
    after: '1s',
    also: merged(room(NOTIFYING), STATE_PROXY),
    see: stateEvents('room:1', 'occupied'),
    was: ['occupied'],
    is: ['occupied', 'vacated']
  },
  'admin.enabled': {
    before: false,
    after: true,
    also: { admin: { password: PASSWORD } },
    see: async (world) => async () => (await new Operator(world).signIn(PASSWORD)).status,
    was: 404,
    is: 204
  },
  'admin.password': {
    before: 'another password',
    after: PASSWORD,
    also: { admin: { enabled: true } },
    see: async (world) => async () => (await new Operator(world).signIn(PASSWORD)).status,
    was: 401,
    is: 204
  },
  'admin.external': external('/admin'),
  'node.name': restart('one', 'two'),
  'shutdown.timeout': {
    before: '60s',
    after: '0s',
    see: async (world) => {
      for (let n = 0; n < 40; n++) await openClient(world.t, world.url)
      return async () => {
        void world.running.close()
        return world.relay.stats().clients > 0 ? 'over a while' : 'at once'
      }
    },
    was: 'over a while',
    is: 'at once'
  },
  'sse.enabled': endpoint('/connection/sse'),
  'http_stream.enabled': endpoint('/connection/http_stream'),
  'prometheus.enabled': endpoint('/metrics', 'GET'),
  'prometheus.recovered_publications_histogram': {
    before: false,
    after: true,
    also: room(RECOVERY),
    see: async (world) => {
      const existing = await connected(world)
      const { epoch } = await world.publish('room:1', 1)
      return async () => {
        await run(existing, 'subscribe', { channel: 'room:1', recover: true, offset: 0, epoch })
        return (await send(world.url, '/metrics')).body.includes('centrifugo_client_recovered_publications_count{')
      }
    },
    was: false,
    is: true
  },
  'prometheus.instrument_http_handlers': {
    before: false,
    after: true,
    see: async (world) => async () => {
      await send(world.url, '/health')
      return (await send(world.url, '/metrics')).body.includes('centrifugo_node_incoming_http_requests_total{')
    },
    was: false,
    is: true
  },
  'health.enabled': endpoint('/health')
}

const BASE: ConfigFile = { client: { token: { hmac_secret_key: HMAC_SECRET } }, http_api: { key: API_KEY } }

/** Merges objects, and the entries of two lists of objects with the same index. */
function merged(one: ConfigFile, other: ConfigFile): ConfigFile {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...names].map((name) => [name, mergedValue(one[name], other[name])]))
}

function mergedValue(one: unknown, other: unknown): unknown {
  if (isObject(one) && isObject(other)) return merged(one, other)
  if (Array.isArray(one) && Array.isArray(other) && [...one, ...other].every(isObject)) {
    const length = Math.max(one.length, other.length)
    return Array.from({ length }, (_, index) => mergedValue(one[index], other[index]))
  }
  return other === undefined ? one : other
}

/** A file in which one option has this value; undefined leaves it out. */
const fileWith = (path: string, value: unknown, also: ConfigFile = {}): ConfigFile => {
  const base = merged(BASE, also)
  if (value === undefined) return base
  const option = ([step = '', ...rest]: readonly string[]): ConfigFile => {
    if (!step.endsWith('[]')) return { [step]: rest.length === 0 ? value : option(rest) }
    const entry = option(rest)
    const isNamed = step !== 'namespaces[]' || isDeepStrictEqual(Object.keys(entry), ['name'])
    return { [step.slice(0, -2)]: [isNamed ? entry : { name: 'room', ...entry }] }
  }
  return merged(base, option(path.split('.')))
}

/** The options of the default proxies are read like those of a named one. */
const OF_DEFAULT_PROXY = /^(?:client\.proxy\.\w+|channel\.proxy\.\w+|rpc\.proxy)\.(?!enabled$|endpoint$)/

const startWorld = async (t: Test, file: ConfigFile): Promise<World> => {
  // The clocks are moved by the test only, so that rate limits do not depend on the speed of the machine.
  const startedAt = { wallMs: Date.now(), monotonicMs: 1_000_000 }
  let shiftMs = 0
  const clocks = { nowMs: () => startedAt.wallMs + shiftMs, monotonicMs: () => startedAt.monotonicMs + shiftMs }
  const reads = { count: 0 }
  const engineLag = { ms: 0 }
  const engine = memoryEngine({ ...clocks, nowMs: () => clocks.nowMs() - engineLag.ms, newEpoch })
  const history: History = {
    read: (...args) => {
      reads.count += 1
      return engine.history.read(...args)
    },
    remove: (...args) => engine.history.remove(...args)
  }
  const presenceReads = { now: 0, most: 0 }
  const presence: Presence = {
    add: (...args) => engine.presence.add(...args),
    remove: (...args) => engine.presence.remove(...args),
    read: (...args) => engine.presence.read(...args),
    count: async (...args) => {
      presenceReads.now += 1
      presenceReads.most = Math.max(presenceReads.most, presenceReads.now)
      await setImmediate()
      presenceReads.now -= 1
      return engine.presence.count(...args)
    }
  }
  const relay = await startRelay(t, file, NO_ENVIRONMENT, { ...clocks, engine: { ...engine, history, presence } })
  return {
    ...relay,
    t,
    reads,
    presenceReads,
    engineLag,
    advance: (ms) => {
      shiftMs += ms
      relay.relay.tick()
    }
  }
}

const reloadOf = (before: ConfigFile, after: ConfigFile) =>
  reloadConfigFile(configOf(before, NO_ENVIRONMENT), { RELAY_CONFIG: 'relay.json' }, () => JSON.stringify(after))

t.test('every option of the configuration file has a test case', async (t) => {
  const paths = relayOptions().map(({ path }) => path)
  t.same(Object.keys(OPTIONS).toSorted(), paths.filter((path) => !OF_DEFAULT_PROXY.test(path)).toSorted())
})

/**
 * Options of channels without a namespace whose effect is tested, and those of proxies, which are read separately. The others
 * are read as those of a namespace, whose effects are tested.
 */
const SEEN_WITHOUT_NAMESPACE = /^$|proxy|^(?:allow_subscribe_for_client|history_size|presence)$/

for (const [path, row] of Object.entries(OPTIONS)) {
  if (row === 'one value') continue
  const before = fileWith(path, row.before, row.also)
  const after = fileWith(path, row.after, row.also)
  const name = path.replace('namespaces[]', 'namespaces[room]').replace('proxies[]', 'proxies[one]')

  if ('listed' in row) {
    t.test(
      `a reload with another ${path} ${row.listed === 'process' ? 'takes effect' : `lists it as ${row.listed}`}`,
      async (t) => {
        const reload = reloadOf(before, after)
        t.ok(reload.ok)
        const lists = reload.ok && { needsRestart: reload.needsRestart, needsReconnect: reload.needsReconnect }
        t.same(lists, {
          needsRestart: [],
          needsReconnect: [],
          ...(row.listed !== 'process' && { [row.listed]: [name] })
        })
      }
    )
    continue
  }

  const [, option = ''] = path.split('channel.without_namespace.')
  const ofNamespace = OPTIONS[`channel.namespaces[].${option}`]
  if (!SEEN_WITHOUT_NAMESPACE.test(option) && typeof ofNamespace === 'object') {
    t.test(`a reload with another ${path} has the result of a reload with that option of a namespace`, async (t) => {
      t.match(reloadOf(before, after), { ok: true, needsRestart: [], needsReconnect: [] })
      const named = fileWith(`channel.namespaces[].${option}`, row.after, ofNamespace.also)
      const { withoutNamespace } = configOf(after, NO_ENVIRONMENT).channels
      t.same(withoutNamespace, configOf(named, NO_ENVIRONMENT).channels.namespaces.get('room'))
      t.notSame(withoutNamespace, configOf(before, NO_ENVIRONMENT).channels.withoutNamespace)
    })
    continue
  }

  t.test(`a reload with another ${path} takes effect for existing connections and channels`, async (t) => {
    t.match(reloadOf(before, after), { ok: true, needsRestart: [], needsReconnect: [] })
    const unchanged = await row.see(await startWorld(t, before))
    t.same(await unchanged(), row.was, 'without the reload')

    const world = await startWorld(t, before)
    const changed = await row.see(world)
    world.running.configure(configOf(after, NO_ENVIRONMENT))
    t.same(await changed(), row.is, 'with the reload')
  })
}

t.test('a reload keeps the ping interval of connected clients', async (t) => {
  const file = (interval: string): ConfigFile => merged(BASE, { client: { ping_interval: interval } })
  const world = await startWorld(t, file('10s'))
  const existing = await connected(world)
  world.running.configure(configOf(file('60s'), NO_ENVIRONMENT))
  for (let pings = 0; pings < 3; pings++) {
    world.advance(10_000)
    t.same(await existing.next(), {}, 'a ping')
    existing.send('{}')
    // The reply to a later command means that the relay has read the pong.
    await run(existing, 'presence_stats', { channel: 'room:1' })
  }
})

t.test('a reload with another conflate loses no queued publications of a slow client', async (t) => {
  const file = (conflate: Json): ConfigFile =>
    merged(merged(BASE, room({ allow_subscribe_for_client: true, ...conflate })), {
      client: { queue_max_size: 64 * 1024 * 1024 }
    })
  const world = await startWorld(t, file({ conflate: 'data[].id' }))
  const existing = await stoppedReader(world, 'room:1')
  await publishAll(world, 'room:1', BATCHES, BATCH)
  await world.publish('room:1', { data: [{ id: 'only once', n: 1 }] })
  t.not(world.relay.clients[0]?.subscriptions.get('room:1')?.backlog, null, 'publications are queued')
  for (const conflate of [{ conflate: 'data[].n' }, {}])
    world.running.configure(configOf(file(conflate), NO_ENVIRONMENT))
  await world.publish('room:1', { last: true })
  existing.ws.resume()
  const all = await publicationsOf(existing, (data) => isDeepStrictEqual(data, { last: true }))
  t.ok(all.length < BATCHES)
  t.ok(JSON.stringify(all).includes('only once'))
})

for (const workers of [1, 2]) {
  t.test(
    `SIGHUP to a relay with ${workers} worker(s) logs the options that need a restart or reconnect, and changes the log level`,
    async (t) => {
      const rows = Object.entries(OPTIONS).flatMap(([path, row]) =>
        typeof row === 'object' &&
        'listed' in row &&
        !path.startsWith('channel.without_namespace') &&
        // The options of an engine are not compared if the engine is another one.
        !path.startsWith('engine.redis.') &&
        path !== 'log.file'
          ? [{ path, row }]
          : []
      )
      const common = rows.reduce<ConfigFile>((base, { row }) => merged(base, row.also ?? {}), {
        http_api: { external: true },
        channel: { namespaces: [{ name: 'room', ...HISTORY }, { name: 'one' }, { name: 'two' }] }
      })
      const fileOf = (side: 'before' | 'after'): ConfigFile =>
        rows.reduce<ConfigFile>((base, { path, row }) => merged(base, fileWith(path, row[side])), common)
      const file = join(t.testdir(), 'relay.json')
      const write = (content: ConfigFile, level: string): void =>
        writeFileSync(file, JSON.stringify(merged(content, { log: { level } })))
      write(merged(fileOf('before'), { http_server: { port: 0 } }), 'info')
      const program = await startProgram(t, 'dist/src/relay/main.js', {
        RELAY_CONFIG: file,
        RELAY_WORKERS: String(workers)
      })
      const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
      const reload = async (times: number): Promise<Record<string, string[]>> => {
        program.signal('SIGHUP')
        const lines = (): string[] => program.stdout.split('\n').filter((line) => line.includes('config reloaded'))
        await eventually(() => lines().length === times)
        return JSON.parse(lines()[times - 1] ?? '')
      }

      write(fileOf('after'), 'error')
      const { needsRestart, needsReconnect } = await reload(1)
      const listed = (list: Listed['listed']): string[] =>
        rows
          .filter(({ row }) => row.listed === list)
          .map(({ path }) => path.replace('namespaces[]', 'namespaces[room]').replace('proxies[]', 'proxies[one]'))
      t.same(needsRestart?.toSorted(), listed('needsRestart').toSorted())
      t.same(needsReconnect?.toSorted(), listed('needsReconnect').toSorted())
      // Each request causes a warning, which the log level hides. With several workers, each gets some of the connections.
      for (let count = 0; count < 4 * workers; count++) await send(url, '/api/info', { method: 'POST' })

      write(fileOf('after'), 'info')
      await reload(2)
      program.signal('SIGTERM')
      await program.exited
      t.notMatch(program.stdout, /"level":40/)
      t.equal(program.stdout.match(/"msg":"stopped"/g)?.length, workers === 1 ? 1 : workers + 1)
    }
  )
}
