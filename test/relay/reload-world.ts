import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import { newEpoch } from '../../src/relay/build-engine.js'
import type { History, Presence } from '../../src/relay/core/engine.js'
import { memoryEngine } from '../../src/relay/engine/memory.js'
import { isObject } from '../../src/shared/is-object.js'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import type { EventBackend, EventRequest } from '../helper/event-backend.js'
import { eventually } from '../helper/eventually.js'
import { send } from '../helper/http.js'
import { type Json, openClient, RawClient } from '../helper/raw-client.js'
import { type EdgeRelay, startRelay } from '../helper/relay.js'
import { API_KEY, type ConfigFile, HMAC_SECRET } from '../helper/relay-rules.js'
import { required } from '../helper/required.js'
import type { SubscribeResult } from '../helper/server-message.js'
import { configOfFile, fileWith, NO_ENVIRONMENT } from './reload-fixture.js'

// A relay whose options a test changes, and observations of what connections, channels and backends notice of it.

export interface World extends EdgeRelay {
  readonly t: Test
  /** Number of reads of the history, also for position checks. */
  readonly reads: { count: number }
  /** The largest number of presence reads at the same time. */
  readonly presenceReads: { most: number }
  /** How late publications arrive from the engine. */
  readonly engineLag: { ms: number }
  readonly backend: EventBackend
}

export interface Effect {
  /** Of the option, in the two files. */
  readonly values: readonly [before: unknown, after: unknown]
  /** Further options of both files. */
  readonly also?: ConfigFile
  /** Sets up connections; the returned function observes the option after the reload. */
  readonly see: (world: World) => Promise<() => Promise<unknown>>
  /** What is observed without and with the reload. */
  readonly seen: readonly [without: unknown, with_: unknown]
}

let lastId = 100

/** The result of a command, the code of its error, or the code that the connection was closed with. */
export const run = async (
  client: RawClient,
  method: string,
  request: Json
): Promise<SubscribeResult | number | string> => {
  const id = ++lastId
  client.send({ id, [method]: request })
  for (;;) {
    const message = await Promise.race([client.next(), client.closed])
    if (typeof message === 'string') return message.slice(0, 4)
    if (message.id !== id) continue
    if (message.error !== undefined) return message.error.code
    const result = message[method]
    return isObject(result) ? result : {}
  }
}

/** Like `run`, with 'ok' for any result. */
export const outcome = async (client: RawClient, method: string, request: Json): Promise<number | string> => {
  const result = await run(client, method, request)
  return typeof result === 'object' ? 'ok' : result
}

/** The result of a command that succeeds. */
export const resultOf = async (client: RawClient, method: string, request: Json): Promise<SubscribeResult> => {
  const result = await run(client, method, request)
  if (typeof result !== 'object') throw new Error(`${method} failed with ${result}`)
  return result
}

export const token = (claims: Json, secret = HMAC_SECRET, lifetimeSeconds = 3600): string =>
  signJwt(claims, secretKey(secret), { lifetimeSeconds })

export const connected = async ({ t, url }: World, text = token({ sub: '42' })): Promise<RawClient> => {
  const client = await openClient(t, url)
  await run(client, 'connect', text === '' ? {} : { token: text })
  return client
}

/** What a new connection with this token, or without one, results in. */
export const connecting =
  (sign: () => Promise<string>): Effect['see'] =>
  async ({ t, url }) =>
  async () => {
    const text = await sign()
    return outcome(await openClient(t, url), 'connect', text === '' ? {} : { token: text })
  }

/** What a command of an existing connection results in. */
export const commanding =
  (method: string, request: Json, text?: string): Effect['see'] =>
  async (world) => {
    const existing = await connected(world, text)
    return () => outcome(existing, method, request)
  }

export const subscribing = (channel: string): Effect['see'] => commanding('subscribe', { channel })

export const upgradeStatus = ({ t, url }: World, options: object = {}): Promise<number> => {
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

/** A limit on connections that an existing one uses up. */
export const limit = (status: number, before = 1, after = 2): Effect => ({
  values: [before, after],
  see: async (world) => {
    await openClient(world.t, world.url)
    return () => upgradeStatus(world)
  },
  seen: [status, 101]
})

/** What an existing connection does after a time: 'open', or the code that it was closed with. */
export const after =
  (ms: readonly number[], open: (world: World) => Promise<RawClient>): Effect['see'] =>
  async (world) => {
    const existing = await open(world)
    return async () => {
      for (const each of ms) world.advance(each)
      const result = await outcome(existing, 'presence_stats', { channel: 'room:open?' })
      return typeof result === 'number' ? 'open' : result
    }
  }

/** The status of a request without a body, or with one. */
export const status =
  (path: string, body?: string): Effect['see'] =>
  async ({ url }) =>
  async () =>
    (await send(url, path, body === undefined ? {} : { method: 'POST', body })).status

export const UNI_REQUEST = '{"name":"a display"}'

export const apiStatus =
  (method: string, request: object, key = API_KEY): Effect['see'] =>
  async (world) =>
  async () =>
    (await world.api(method, request, { headers: { 'x-api-key': key } })).status

/** The error code of a call of the API, or its result. */
export const api = async (world: World, method: string, request: object) => {
  const { error, result } = JSON.parse((await world.api(method, request)).body)
  return error?.code ?? result
}

export const publishing =
  (channel: string, data: unknown = 1): Effect['see'] =>
  async (world) =>
  async () => {
    const result = await api(world, 'publish', { channel, data })
    return typeof result === 'number' ? result : 'ok'
  }

export const publishAll = async (world: World, channel: string, count: number, data: unknown = 1): Promise<void> => {
  for (let n = 0; n < count; n++) await world.publish(channel, data)
}

/** A connection whose subscription is active, which it becomes shortly after the reply. */
export const subscribed = async (world: World, request: Json = {}): Promise<RawClient> => {
  const client = await connected(world)
  await resultOf(client, 'subscribe', { channel: 'room:1', ...request })
  await world.publish('room:1', 0)
  while ((await client.next()).push === undefined);
  return client
}

// 12 MB, more than the buffers of a connection.
export const BATCHES = 100
export const BATCH = { data: Array.from({ length: 40 }, (_, index) => ({ id: `t${index}`, filler: 'x'.repeat(3000) })) }
export const LAST = { last: true }
export const LARGE_QUEUE = { client: { queue_max_size: 64 * 1024 * 1024 } }

/** A subscriber that has stopped reading. */
export const stoppedReader = async (world: World): Promise<RawClient> => {
  const client = await connected(world)
  await run(client, 'subscribe', { channel: 'room:1' })
  client.ws.pause()
  return client
}

/** What a subscriber receives up to the last publication, when it reads again. */
export const remaining = async (world: World, client: RawClient): Promise<readonly unknown[]> => {
  await world.publish('room:1', LAST)
  client.ws.resume()
  const all: unknown[] = []
  while (!isDeepStrictEqual(all.at(-1), LAST)) {
    const { push } = await client.next()
    if (push?.pub !== undefined) all.push(push.pub.data)
  }
  return all
}

/** The backend that a command asks, by name. */
export const asking =
  (method: string, request: Json, observe = ({ event }: EventRequest): unknown => event): Effect['see'] =>
  async (world) => {
    const existing = await connected(world)
    return async () => {
      await run(existing, method, request)
      return observe(required(world.backend.requests.at(-1)))
    }
  }

/** The backend that is asked after time has passed. */
export const askedAfter = (world: World, ms: number): Promise<string> => {
  const { backend } = world
  const before = backend.requests.length
  world.advance(ms)
  return eventually(() => backend.requests[before]?.event)
}

/** The types of the webhook's events after a channel was vacated and another one occupied, up to this one. */
export const stateEvents =
  (last?: string): Effect['see'] =>
  async (world) => {
    const existing = await occupying(world)
    return async () => {
      const { requests } = world.backend
      const before = requests.length
      await run(existing, 'unsubscribe', { channel: 'room:1' })
      world.advance(10_000)
      await run(existing, 'subscribe', { channel: 'room:2' })
      return eventually(() => {
        const bodies = requests.slice(before).map(({ body }) => body.events)
        const types = bodies.flat().map((each) => (isObject(each) ? each.type : null))
        return types.length > 0 && (last === undefined || types.includes(last)) ? types.toSorted() : null
      })
    }
  }

/** Subscribes to a channel, and waits until the backend was notified that it is occupied. */
export const occupying = async (world: World): Promise<RawClient> => {
  const existing = await connected(world)
  const { requests } = world.backend
  const before = requests.length
  await run(existing, 'subscribe', { channel: 'room:1' })
  await eventually(() => requests.length > before)
  return existing
}

/** How many of three simultaneous calls succeed. */
export const simultaneousCalls: Effect['see'] = async (world) => {
  const { backend } = world
  const clients = [await connected(world), await connected(world), await connected(world)]
  return async () => {
    const held = backend.hold('one')
    const calls = clients.map((client) => outcome(client, 'rpc', { method: 'x' }))
    await held.next()
    // At least one is refused at once.
    await Promise.race(calls)
    held.release({})
    const outcomes = await Promise.all(calls)
    backend.handlers.delete('one')
    return outcomes.filter((each) => each === 'ok').length
  }
}

export const keysOf = async (world: World, channel: string): Promise<readonly string[]> => {
  const { entries = [] } = await api(world, 'map_read_state', { channel, limit: -1 })
  return (entries as readonly { key: string }[]).map(({ key }) => key)
}

export const startWorld = async (t: Test, backend: EventBackend, file: ConfigFile): Promise<World> => {
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
    backend,
    reads,
    presenceReads,
    engineLag,
    advance: (ms) => {
      shiftMs += ms
      relay.relay.tick()
    }
  }
}

/** Tests each effect without and with the reload. */
export const testEffects = (t: Test, backend: EventBackend, effects: Readonly<Record<string, Effect>>): void => {
  for (const [path, { values, also, see, seen }] of Object.entries(effects)) {
    t.test(`a reload with another ${path} takes effect for existing connections and channels`, async (t) => {
      const [before, after] = values
      const unchanged = await see(await startWorld(t, backend, fileWith(path, before, also)))
      t.same(await unchanged(), seen[0], 'without the reload')

      const world = await startWorld(t, backend, fileWith(path, before, also))
      const changed = await see(world)
      world.running.configure(configOfFile(fileWith(path, after, also)))
      t.same(await changed(), seen[1], 'with the reload')
    })
  }
}
