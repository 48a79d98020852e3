import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { newEpoch } from '../../src/relay/build-engine.js'
import type { Engine } from '../../src/relay/core/engine.js'
import type { ProbeTimings } from '../../src/relay/delivery-probe.js'
import { memoryEngine } from '../../src/relay/engine/memory.js'
import { createLogger } from '../../src/shared/logger.js'
import { eventually } from '../helper/eventually.js'
import { send } from '../helper/http.js'
import { connectedClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { startRedisCluster } from '../helper/redis-cluster.js'
import { type EdgeRelay, startRelay } from '../helper/relay.js'
import { startWorkers } from '../helper/relay-workers.js'

/** No background probes during a test. */
const ON_REQUEST: ProbeTimings = { timeoutMs: 4_000, intervalMs: 3_600_000 }
const SHORT: ProbeTimings = { ...ON_REQUEST, timeoutMs: 50 }
const IN_BACKGROUND: ProbeTimings = { timeoutMs: 4_000, intervalMs: 10 }

const probe = async ({ url }: { readonly url: string }) => {
  const { status, body } = await send(url, '/health/delivery')
  return { status, ...JSON.parse(body) }
}

const metric = async ({ url }: { readonly url: string }, sample: string): Promise<number | null> => {
  const { body } = await send(url, '/metrics')
  const line = body.split('\n').find((each) => each.startsWith(`${sample} `))
  return line === undefined ? null : Number(line.slice(sample.length))
}

const newMemoryEngine = (): Engine => memoryEngine({ nowMs: Date.now, monotonicMs: () => performance.now(), newEpoch })

/** A memory engine with another broker. */
const withBroker = (change: (broker: Engine['broker']) => Partial<Engine['broker']>): Engine => {
  const engine = newMemoryEngine()
  const broker: Engine['broker'] = Object.assign(Object.create(engine.broker), change(engine.broker))
  // Private fields are not accessible through a prototype.
  for (const name of ['start', 'subscribe', 'unsubscribe', 'isDelivering', 'publish', 'joinOrLeave', 'close'] as const)
    if (!Object.hasOwn(broker, name)) Object.assign(broker, { [name]: engine.broker[name].bind(engine.broker) })
  return { ...engine, broker }
}

const never = (): Promise<never> => new Promise(() => undefined)

t.test('/health/delivery is 200 with the duration of a delivery through the memory engine', async (t) => {
  const relay = await startRelay(t, undefined, {}, { probeTimings: ON_REQUEST })
  t.match(await probe(relay), { status: 'ok', durationMs: Number })
  t.equal((await send(relay.url, '/health/delivery', { method: 'HEAD' })).status, 200)
  t.equal((await send(relay.url, '/health/delivery', { method: 'POST' })).status, 405)
  t.equal(await metric(relay, 'gatehouse_delivery_probe_seconds_count'), 2)
})

t.test('the channel of the probe is not listed', async (t) => {
  const relay = await startRelay(t, undefined, { RELAY_ADMIN_PASSWORD: 'long enough' }, { probeTimings: ON_REQUEST })
  const before = (await send(relay.url, '/metrics')).body
  await probe(relay)
  const result = async (method: string) => JSON.parse((await relay.api(method, {})).body).result
  t.same((await result('channels')).channels, {})
  t.match((await result('info')).nodes, [{ num_channels: 0, num_subs: 0 }])
  t.equal(relay.relay.openChannels.size, 0)
  t.equal(relay.relay.activity.channels.size, 0)
  const namespaces = (page: string) => page.match(/^centrifugo_node(?!.*"survey").*channel_namespace.*$/gm) ?? []
  t.same(namespaces((await send(relay.url, '/metrics')).body), namespaces(before))
})

t.test('concurrent requests share one probe', async (t) => {
  let publications = 0
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const engine = withBroker((broker) => ({
    subscribe: async (channel) => {
      await released
      return broker.subscribe(channel)
    },
    publish: (...args) => {
      publications++
      return broker.publish(...args)
    }
  }))
  const relay = await startRelay(t, undefined, {}, { engine, probeTimings: ON_REQUEST })
  const running = Array.from({ length: 100 }, () => probe(relay))
  let served = 0
  relay.running.server.on('request', () => served++)
  await eventually(() => served >= 100)
  release()
  for (const result of await Promise.all(running)) t.match(result, { status: 'ok' })
  t.equal(publications, 1)
})

t.test('/health/delivery is 503 with the failed step', async (t) => {
  const CASES: readonly (readonly [step: string, engine: Engine])[] = [
    ['subscribe', withBroker(() => ({ subscribe: never }))],
    ['subscribe', withBroker(() => ({ subscribe: () => Promise.reject(new Error('no server')) }))],
    ['publish', withBroker(() => ({ publish: never }))],
    ['publish', withBroker(() => ({ publish: () => Promise.reject(new Error('read-only')) }))],
    ['delivery', withBroker(() => ({ publish: async () => ({ epoch: '', offset: 0, suppressedBy: null }) }))],
    ['engine', { ...newMemoryEngine(), isReady: false }],
    ['engine', { ...newMemoryEngine(), probeChannels: () => [] }]
  ]
  for (const [index, [step, engine]] of CASES.entries()) {
    t.test(`/health/delivery names the step ${step} (case ${index + 1})`, async (t) => {
      const lines: string[] = []
      const log = createLogger({ name: 'relay', level: 'info', stream: { write: (line) => lines.push(line) } })
      const relay = await startRelay(t, undefined, {}, { engine, probeTimings: SHORT, log })
      const { status, body } = await send(relay.url, '/health/delivery')
      t.equal(status, 503)
      t.match(JSON.parse(body), { status: 'unavailable', step, durationMs: Number })
      await probe(relay)
      t.equal(await metric(relay, `gatehouse_delivery_probe_failures_total{step="${step}"}`), 2)
      t.equal(await metric(relay, 'gatehouse_delivery_probe_seconds_count'), null)
      const reported = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'delivery probe failed')
      t.match(reported, [{ step, cause: String }], 'one line for consecutive failures')
    })
  }
})

t.test('a late delivery of an earlier probe does not complete the next one', async (t) => {
  const held: (() => void)[] = []
  const engine = withBroker((broker) => ({
    publish: async (...args) => {
      held.push(() => void broker.publish(...args))
      return { epoch: '', offset: 0, suppressedBy: null }
    }
  }))
  const relay = await startRelay(t, undefined, {}, { engine, probeTimings: SHORT })
  t.match(await probe(relay), { step: 'delivery' })
  const second = probe(relay)
  await eventually(() => held.length === 2)
  held[0]?.()
  t.match(await second, { step: 'delivery' })
})

t.test('probes run in the background', async (t) => {
  const relay = await startRelay(t, undefined, {}, { probeTimings: IN_BACKGROUND })
  await eventually(async () => ((await metric(relay, 'gatehouse_delivery_probe_seconds_count')) ?? 0) >= 3)
  t.equal(await metric(relay, 'gatehouse_delivery_probe_failures_total{step="delivery"}'), 0)
})

/** The names of the streams that probes have written. */
const probeKeys = async (url: string): Promise<readonly string[]> => {
  const redis = new Redis(url)
  try {
    return await redis.keys('*delivery-probe-*stream')
  } finally {
    redis.disconnect()
  }
}

const startOnRedis = (t: Test, url: string, probeTimings = ON_REQUEST): Promise<EdgeRelay> =>
  startRelay(t, undefined, { RELAY_ENGINE: 'redis', REDIS_URL: url }, { probeTimings })

t.test('with Redis', async (t) => {
  const redis = await startRedis(t)
  const relay = await startOnRedis(t, redis.url)

  t.test('/health/delivery is 200 while Redis delivers', async (t) => {
    t.match(await probe(relay), { status: 'ok' })
    t.match(await probe(relay), { status: 'ok' })
    t.equal((await probeKeys(redis.url)).length, 1)
  })

  t.test('/health/delivery is 503 while Redis does not respond', async (t) => {
    redis.pause()
    const { status, step } = await probe(relay)
    redis.resume()
    t.equal(status, 'unavailable')
    t.equal(step, 'publish')
  })

  t.test('/health/delivery is 503 while Redis rejects writes', async (t) => {
    const admin = new Redis(redis.url)
    await eventually(async () => (await probe(relay)).status === 'ok')
    await admin.config('SET', 'maxmemory', '1')
    t.match(await probe(relay), { status: 'unavailable', step: 'publish' })
    await admin.config('SET', 'maxmemory', '0')
    admin.disconnect()
    await eventually(async () => (await probe(relay)).status === 'ok')
  })

  t.test('/health/delivery is 503 while Redis is stopped, and 200 after its restart', async (t) => {
    await redis.kill()
    t.match(await probe(relay), { status: 'unavailable', step: 'subscribe' })
    await redis.restart()
    await eventually(async () => (await probe(relay)).status === 'ok')
  })
})

t.test('with two Redis servers, the probe covers both', async (t) => {
  const servers = [await startRedis(t), await startRedis(t)] as const
  const relay = await startOnRedis(t, servers.map(({ url }) => url).join(','))
  t.match(await probe(relay), { status: 'ok' })
  for (const { url } of servers) t.equal((await probeKeys(url)).length, 1)
  for (const server of servers) {
    await server.kill()
    t.match(await probe(relay), { status: 'unavailable' })
    await server.restart()
    await eventually(async () => (await probe(relay)).status === 'ok')
  }
})

t.test('with a Redis Cluster, the probe covers every server', async (t) => {
  const { url, servers } = await startRedisCluster(t)
  const relay = await startOnRedis(t, url)
  await eventually(async () => (await probe(relay)).status === 'ok')
  for (const server of servers) t.equal((await probeKeys(server.url)).length, 1)
  await servers[1]?.kill()
  await eventually(async () => (await probe(relay)).status === 'unavailable')
})

t.test('with workers, every worker probes through the primary', async (t) => {
  const relay = await startWorkers(t, 2, {})
  for (let request = 0; request < 4; request++) t.match(await probe(relay), { status: 'ok' })
  t.ok(((await metric(relay, 'gatehouse_delivery_probe_seconds_count')) ?? 0) >= 4, 'probes of both workers are summed')
})

t.test('gatehouse_channel_silence_seconds is the silence of the most silent channel with subscribers', async (t) => {
  const relay = await startRelay(t, undefined, {}, { probeTimings: ON_REQUEST })
  const silence = () => metric(relay, 'gatehouse_channel_silence_seconds{channel_namespace="floor"}')
  const client = await connectedClient(t, relay.url)
  await client.request({ id: 2, subscribe: { channel: 'floor:1' } })
  await client.request({ id: 3, subscribe: { channel: 'floor:2' } })
  relay.advance(1_000_000)
  t.ok(((await silence()) ?? 0) >= 1000)
  await relay.publish('floor:1', {})
  t.ok(((await silence()) ?? 0) >= 1000, 'floor:2 is still silent')
  await relay.publish('floor:2', {})
  await eventually(async () => ((await silence()) ?? 1000) < 1000)
  await client.request({ id: 4, unsubscribe: { channel: 'floor:1' } })
  await client.request({ id: 5, unsubscribe: { channel: 'floor:2' } })
  await eventually(async () => (await silence()) === null)
})

t.test('gatehouse_publication_age_seconds measures from the newest entry to the delivery', async (t) => {
  const file = {
    channel: {
      namespaces: [
        {
          name: 'floor',
          allow_subscribe_for_client: true,
          conflate: 'data[].id',
          entry_time: 'timestamp'
        }
      ]
    }
  }
  const relay = await startRelay(t, file, {}, { probeTimings: ON_REQUEST })
  const client = await connectedClient(t, relay.url)
  await client.request({ id: 2, subscribe: { channel: 'floor:1' } })
  const age = (suffix: string) =>
    metric(relay, `gatehouse_publication_age_seconds_${suffix}{channel_namespace="floor"}`)
  const at = (secondsAgo: number) => Date.now() - secondsAgo * 1000

  await relay.publish('floor:1', { data: [{ id: 1 }] })
  await client.next()
  t.equal(await age('count'), null, 'entries without a time are not measured')

  relay.advance(1000)
  await relay.publish('floor:1', {
    data: [
      { id: 1, timestamp: at(500) },
      { id: 2, timestamp: at(100) }
    ]
  })
  await eventually(async () => (await age('count')) === 1)
  const seconds = (await age('sum')) ?? 0
  // The relay's clock was advanced by a second.
  t.ok(seconds >= 101 && seconds < 400, `the newest entry is ${seconds} s old`)

  relay.advance(1000)
  await relay.publish('floor:1', { data: [{ id: 1, timestamp: new Date(at(-3600)).toISOString() }] })
  await eventually(async () => (await age('count')) === 2)
  t.equal(await age('sum'), seconds, 'a time in the future counts as 0')
})
