import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { ChaosOptions } from '../../helper/chaos-command.js'
import type { Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis, type TestRedis } from '../../helper/redis.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { MapClient, stateText, type Value, VIEW_OPTIONS, valueWith } from '../../relay/maps/map-client.js'
import { Random } from '../soak/random.js'

const STREAM = { stream_size: 50, stream_ttl: '1h', min_page_size: 1, default_page_size: 10, max_page_size: 20 }
const MAPS = {
  persistent: { mode: 'persistent', ...STREAM },
  recoverable: { mode: 'recoverable', key_ttl: '1h', ...STREAM },
  brief: { mode: 'recoverable', key_ttl: '2s', ...STREAM }
}
const CHANNELS = Object.keys(MAPS).map((name) => `${name}:1`)
const KEYS = Array.from({ length: 40 }, (_, index) => `k${index}`)
const FILE = {
  channel: {
    namespaces: Object.entries(MAPS).map(([name, map]) => ({
      name,
      subscription_type: 'map',
      allow_subscribe_for_client: true,
      allowed_delta_types: ['fossil'],
      ...VIEW_OPTIONS,
      map
    }))
  }
}

/** What a key of a map may be: a number, or null if it is absent. More than one while outcomes are unknown. */
type Possible = Map<string, Set<number | null>>

/** One map, its writer and what Redis must have if it loses nothing. */
class Followed {
  readonly channel: string
  readonly possible: Possible = new Map()
  readonly #edges: readonly EdgeRelay[]
  readonly #random: Random
  #n = 0
  written = 0
  failed = 0

  constructor(channel: string, edges: readonly EdgeRelay[], random: Random) {
    this.channel = channel
    this.#edges = edges
    this.#random = random
  }

  async change(key: string): Promise<void> {
    const isRemoval = this.#random.fraction() < 0.3
    const n = isRemoval ? null : ++this.#n
    const before = this.possible.get(key) ?? new Set([null])
    this.possible.set(key, new Set([...before, n]))
    const request = { channel: this.channel, key, ...(n !== null && { data: valueWith(n) }) }
    const { body } = await this.#random.pick(this.#edges).api(isRemoval ? 'map_remove' : 'map_publish', request)
    if (JSON.parse(body).error === undefined) {
      this.possible.set(key, new Set([n]))
      this.written += 1
    } else this.failed += 1
  }

  async stored(): Promise<ReadonlyMap<string, number>> {
    const { body } = await this.#random.pick(this.#edges).api('map_read_state', { channel: this.channel, limit: -1 })
    const entries: readonly { readonly key: string; readonly data: Value }[] = JSON.parse(body).result.entries ?? []
    return new Map(entries.map(({ key, data }) => [key, data.n]))
  }

  /** Confirmed changes that Redis does not have. Expired keys are not among them. */
  violations(stored: ReadonlyMap<string, number>, expires: boolean): readonly string[] {
    return [...this.possible].flatMap(([key, possible]) => {
      const n = stored.get(key) ?? null
      if (possible.has(n) || (expires && n === null)) return []
      return [`${this.channel} ${key} is ${n} instead of ${[...possible].join(' or ')}`]
    })
  }

  /** After a loss: what Redis has counts. */
  accept(stored: ReadonlyMap<string, number>): void {
    for (const key of KEYS) this.possible.set(key, new Set([stored.get(key) ?? null]))
  }
}

type Fault = readonly [name: string, apply: (redis: TestRedis, random: Random) => Promise<unknown>]

const withRaw = async (redis: TestRedis, work: (raw: Redis) => Promise<unknown>): Promise<void> => {
  const raw = new Redis(redis.url)
  raw.on('error', () => undefined)
  try {
    await work(raw)
  } finally {
    raw.disconnect()
  }
}

const FAULTS: readonly Fault[] = [
  ['kill', (redis) => redis.restart()],
  [
    'kill for a while',
    async (redis, random) => {
      await redis.kill()
      await delay(random.whole(100, 4_000))
      await redis.restart()
    }
  ],
  [
    'pause',
    async (redis, random) => {
      redis.pause()
      await delay(random.whole(100, 4_000))
      redis.resume()
    }
  ],
  ['cut subscriptions', (redis) => withRaw(redis, (raw) => raw.call('CLIENT', 'KILL', 'TYPE', 'pubsub'))],
  ['cut commands', (redis) => withRaw(redis, (raw) => raw.call('CLIENT', 'KILL', 'TYPE', 'normal'))],
  ['forget scripts', (redis) => withRaw(redis, (raw) => raw.script('FLUSH'))]
]

/** Only where Redis may lose writes: it restarts with the last dump. */
const SAVE: Fault = ['save a dump', (redis) => withRaw(redis, (raw) => raw.save())]

/** Follows maps while Redis fails. `isDurable`: Redis loses no confirmed write. */
export const mapChaos = async (
  t: Teardown,
  { seconds, clients, seed }: ChaosOptions,
  isDurable: boolean,
  print: (line: string) => void
): Promise<readonly string[]> => {
  const random = new Random(seed)
  const redis = await startRedis(t, { args: isDurable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : [] })
  const start = () => startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: redis.url })
  const edges = [await start(), await start()]
  const maps = CHANNELS.map((channel) => new Followed(channel, edges, random))
  const followers = Array.from({ length: clients }, (_, index) => {
    const channel = random.pick(CHANNELS)
    const client = new MapClient(t, edges[index % 2]?.port ?? 0, channel, {
      isProtobuf: random.fraction() < 0.5,
      pageSize: random.whole(1, 20),
      tag: null,
      hasDelta: random.fraction() < 0.5,
      view: random.fraction() < 0.3 ? { x: 10, y: 0, w: 20, h: 30 } : null
    })
    client.connect()
    return { channel, client }
  })
  const counts = new Map<string, number>()
  const violations: string[] = []
  const deadline = performance.now() + seconds * 1000
  while (performance.now() < deadline && violations.length === 0) {
    let isWriting = true
    const writers = maps.flatMap((map) =>
      [KEYS.slice(0, 20), KEYS.slice(20)].map(async (keys) => {
        while (isWriting) {
          await map.change(random.pick(keys))
          if (random.fraction() < 0.1) await delay(5)
        }
      })
    )
    await delay(random.whole(100, 1_500))
    const [name, apply] = random.pick(isDurable ? FAULTS : [...FAULTS, SAVE])
    await apply(redis, random)
    counts.set(name, (counts.get(name) ?? 0) + 1)
    for (const { client } of random.some(followers, 3)) await client.cut()
    await delay(random.whole(100, 1_500))
    isWriting = false
    await Promise.all(writers)
    violations.push(...(await settle(maps, followers, isDurable)))
  }
  const total = (count: (map: Followed) => number): number => maps.reduce((sum, map) => sum + count(map), 0)
  print(`${total(({ written }) => written)} changes, ${total(({ failed }) => failed)} failed`)
  print([...counts].map(([name, count]) => `${name}: ${count}`).join(', '))
  return violations
}

/** Waits until every client has what Redis has, and compares that with the confirmed changes. */
const settle = async (
  maps: readonly Followed[],
  followers: readonly { readonly channel: string; readonly client: MapClient }[],
  isDurable: boolean
): Promise<readonly string[]> => {
  const violations: string[] = []
  for (const map of maps) {
    // A map that has lost changes begins a new epoch with its next use.
    await eventually(async () => {
      const failed = map.failed
      await map.change('k0')
      return map.failed === failed
    })
    try {
      await eventually(async () => {
        const stored = [...(await map.stored())]
        for (const { channel, client } of followers) {
          if (channel !== map.channel) continue
          const expected = stateText(stored.filter(([, n]) => client.isInView(n)))
          if (client.state !== expected || !client.isSubscribed)
            throw new Error(`${client.state} instead of ${expected}: ${client.events}`)
        }
        return true
      })
    } catch (error) {
      violations.push(`${map.channel}: ${error instanceof Error ? error.message : error}`)
    }
    const stored = await map.stored()
    if (isDurable) violations.push(...map.violations(stored, map.channel.startsWith('brief')))
    map.accept(stored)
  }
  return violations
}
