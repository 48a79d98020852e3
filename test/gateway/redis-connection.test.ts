import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { MemoryLoginCounter } from '../../src/gateway/login-limit/login-counter.js'
import { RedisLoginCounter } from '../../src/gateway/login-limit/login-counter-redis.js'
import { MemoryProviderSessionStore } from '../../src/gateway/oidc/provider-session-store.js'
import { RedisProviderSessionStore } from '../../src/gateway/oidc/provider-session-store-redis.js'
import { Sealer } from '../../src/gateway/oidc/sealer.js'
import { eventually } from '../helper/eventually.js'
import { startRedis } from '../helper/redis.js'
import { startRedisCluster } from '../helper/redis-cluster.js'
import { startSentinels } from '../helper/redis-sentinel.js'
import { PATIENT_TIMEOUTS } from '../helper/redis-time.js'
import { START_MS, sessionAt, TOKENS } from './oidc/provider-session-store-contract.js'

const WINDOW_MS = 900_000
const now = (): number => START_MS

const options = (url: string, lines: string[] = []) => {
  const record = (...facts: readonly unknown[]): void => void lines.push(JSON.stringify(facts))
  return { redis: { url, timeouts: PATIENT_TIMEOUTS }, log: { info: record, warn: record } }
}

const openCounter = async (t: Test, url: string, lines?: string[]): Promise<RedisLoginCounter> => {
  const local = new MemoryLoginCounter({ windowMs: WINDOW_MS })
  const counter = new RedisLoginCounter({ ...options(url, lines), windowMs: WINDOW_MS, local })
  t.teardown(() => {
    counter.close()
    local.close()
  })
  await counter.ready()
  return counter
}

const openStore = async (
  t: Test,
  url: string,
  overrides: { readonly checkIntervalMs?: number } = {}
): Promise<RedisProviderSessionStore> => {
  const store = new RedisProviderSessionStore({
    ...options(url),
    ...overrides,
    realm: 'test',
    local: new MemoryProviderSessionStore(now, now),
    sealer: new Sealer({ secrets: ['a-secret-for-tests'], purpose: 'test', now, maxCharacters: 10_000 }),
    now
  })
  t.teardown(() => store.close())
  await store.ready()
  return store
}

const clientOf = (t: Test, url: string): Redis => {
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  return client
}

/** Two gateways share login counts, tokens, work and revocations. */
const testSharedState = async (t: Test, url: string): Promise<void> => {
  const counters = [await openCounter(t, url), await openCounter(t, url)] as const
  await counters[0].increment('a')
  t.equal((await counters[1].increment('a')).current, 2)

  const [one, two] = [await openStore(t, url), await openStore(t, url)]
  await one.saveTokens('one', TOKENS)
  t.same(await two.loadTokens('one'), TOKENS)
  let runs = 0
  const work = async (): Promise<number> => ++runs
  t.same(await Promise.all([one.runOnce('a', work), two.runOnce('a', work)]), [1, 1])
  await one.revoke({ kind: 'id', value: 'one' })
  await one.revoke({ kind: 'subject', value: 'ada' })
  await eventually(() => two.isRevoked(sessionAt(START_MS)))
  t.equal(await (await openStore(t, url)).loadTokens('one'), null)
}

t.test('gateways share their state through a Redis Cluster', async (t) => {
  const cluster = await startRedisCluster(t)
  await testSharedState(t, cluster.url)

  t.test('one server of the cluster is enough to find the others', async (t) => {
    const counter = await openCounter(t, cluster.servers[1]?.url ?? '')
    const counts = []
    // Enough keys that every server has one.
    for (let n = 0; n < 30; n++) counts.push((await counter.increment(`key ${n}`)).current)
    t.ok(counts.every((count) => count === 1))
  })

  t.test('a revocation arrives after the connection of the subscription was lost', async (t) => {
    const [one, two] = [await openStore(t, cluster.url), await openStore(t, cluster.url)]
    for (const redis of cluster.redis) await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await one.revoke({ kind: 'subject', value: 'eve' })
    await eventually(() => two.hasRevocation({ kind: 'subject', value: 'eve' }))
  })
})

t.test('gateways share their state through the first of several independent servers', async (t) => {
  const [first, second] = [await startRedis(t), await startRedis(t)]
  await testSharedState(t, `${first.url},${second.url}`)
  await second.kill()
  t.equal((await (await openCounter(t, first.url)).increment('a')).current, 3)
})

t.test('a gateway that starts without Redis uses it once it is available', async (t) => {
  const redis = await startRedis(t, { args: ['--requirepass', 'hunter2'] })
  await redis.kill()
  const lines: string[] = []
  const counter = await openCounter(t, redis.url.replace('//', '//:hunter2@'), lines)
  t.equal((await counter.increment('a')).current, 1)
  t.match(lines.join(), /Redis unavailable/)
  await redis.restart()
  await eventually(async () => {
    await counter.increment('a')
    return lines.some((line) => line.includes('Redis available'))
  })
  t.notMatch(lines.join(), /hunter2/)
})

t.test('revocations reach the other gateways after an outage of Redis', async (t) => {
  const redis = await startRedis(t)
  const [one, two] = [await openStore(t, redis.url), await openStore(t, redis.url)]
  const [before, during] = [{ kind: 'subject', value: 'ada' } as const, { kind: 'id', value: 'one' } as const]
  await one.revoke(before)
  await redis.kill()
  await t.rejects(one.revoke(during))
  t.equal(one.hasRevocation(during), true, 'revoked on this gateway at once')

  await redis.restart()
  await eventually(() => two.hasRevocation(during))
  // The restarted server was empty.
  const later = await openStore(t, redis.url)
  t.same(
    [before, during].map((selector) => later.hasRevocation(selector)),
    [true, true]
  )
})

t.test('a revocation that Redis rejected is published when Redis accepts writes again', async (t) => {
  const redis = await startRedis(t)
  const client = clientOf(t, redis.url)
  const [one, two] = [await openStore(t, redis.url), await openStore(t, redis.url)]
  await one.saveTokens('one', TOKENS)
  await client.config('SET', 'maxmemory', '1')
  const selector = { kind: 'id', value: 'one' } as const
  await t.rejects(one.revoke(selector), /OOM/)
  await client.config('SET', 'maxmemory', '0')
  await eventually(() => two.hasRevocation(selector))
  await eventually(async () => (await two.loadTokens('one')) === null, { label: 'its tokens are deleted too' })
})

t.test('a gateway tries again with pauses while Redis is read-only', async (t) => {
  const redis = await startRedis(t)
  const client = clientOf(t, redis.url)
  const [one, two] = [await openStore(t, redis.url), await openStore(t, redis.url)]
  // A replica whose master is not available.
  await client.replicaof('127.0.0.1', '1')
  const selector = { kind: 'id', value: 'one' } as const
  await t.rejects(one.revoke(selector), /READONLY/)
  const reads = async (): Promise<number> =>
    Number(/cmdstat_zrangebyscore:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0)
  const before = await reads()
  await setTimeout(3_000)
  // Without pauses, every reconnect would be followed by the next one: 30 times.
  t.ok((await reads()) - before <= 12, 'few reads of the list')
  await client.replicaof('NO', 'ONE')
  await eventually(() => two.hasRevocation(selector))
})

t.test('a gateway restores revocations that Redis lost without a lost connection', async (t) => {
  const redis = await startRedis(t)
  const client = clientOf(t, redis.url)
  const store = await openStore(t, redis.url, { checkIntervalMs: 20 })
  const selector = { kind: 'id', value: 'one' } as const
  await store.revoke(selector)
  await client.flushall()
  await eventually(async () => (await openStore(t, redis.url)).hasRevocation(selector))
})

t.test('gateways with Sentinel', async (t) => {
  const sentinels = await startSentinels(t)
  const { url } = sentinels
  await testSharedState(t, url)

  t.test('counts, tokens and revocations survive a failover', async (t) => {
    const lines: string[] = []
    const counters = [await openCounter(t, url, lines), await openCounter(t, url)] as const
    const [one, two] = [await openStore(t, url), await openStore(t, url)]
    for (let attempt = 1; attempt <= 3; attempt++) await counters[0].increment('failover')
    await one.saveTokens('failover', TOKENS)
    const [master, replica] = sentinels.redis
    const offset = async (redis: typeof master): Promise<string | undefined> =>
      /master_repl_offset:(\d+)/.exec(await redis.info('replication'))?.[1]
    await eventually(async () => (await offset(master)) === (await offset(replica)))
    await sentinels.servers[0].kill()

    // While there is no master, each gateway counts by itself.
    t.equal((await counters[0].increment('failover')).current, 4)
    await eventually(async () => (await counters[1].increment('failover')).current >= 4)
    await eventually(async () => (await two.loadTokens('failover')) !== null)
    await eventually(() => one.revoke({ kind: 'subject', value: 'bob' }).then(() => true))
    await eventually(() => two.hasRevocation({ kind: 'subject', value: 'bob' }))
    t.equal((await openStore(t, url)).hasRevocation({ kind: 'subject', value: 'bob' }), true)
    await counters[0].increment('failover')
    t.ok(lines.some((line) => line.includes('Redis available')))
  })
})
