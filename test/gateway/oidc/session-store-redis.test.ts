import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { Sealer } from '../../../src/gateway/oidc/sealer.js'
import { MemorySessionStore } from '../../../src/gateway/oidc/session-store.js'
import { RedisSessionStore } from '../../../src/gateway/oidc/session-store-redis.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis } from '../../helper/redis.js'
import { advanceRedis, PATIENT_TIMEOUTS } from '../../helper/redis-time.js'
import { START_MS, type StoreUnderTest, sessionAt, TOKENS, testSessionStore } from './session-store-contract.js'

const LOG = { info: () => undefined, warn: () => undefined }

const redis = await startRedis(t)
const client = new Redis(redis.url)
t.teardown(() => client.disconnect())

const open = async (t: Test): Promise<StoreUnderTest> => {
  let time = START_MS
  const now = () => time
  const store = new RedisSessionStore({
    url: redis.url,
    realm: 'test',
    local: new MemorySessionStore(now, now),
    sealer: new Sealer({ secrets: ['a-secret-for-tests'], purpose: 'test', now, maxCharacters: 10_000 }),
    log: LOG,
    now,
    timeouts: PATIENT_TIMEOUTS
  })
  t.teardown(() => store.close())
  await store.ready()
  return {
    store,
    async advance(ms) {
      time += ms
      await advanceRedis(client, ms)
    }
  }
}

t.test('RedisSessionStore', async (t) => {
  t.beforeEach(() => client.flushall())
  testSessionStore(t, open)

  t.test('two stores share one run of the work', async (t) => {
    const [{ store: one }, { store: two }] = [await open(t), await open(t)]
    let runs = 0
    const work = async () => ++runs
    t.same(await Promise.all([one.runOnce('a', work), two.runOnce('a', work)]), [1, 1])
  })

  t.test('a store loads the tokens that another one saved', async (t) => {
    const [{ store: one }, { store: two }] = [await open(t), await open(t)]
    await one.saveTokens('one', TOKENS)
    t.same(await two.loadTokens('one'), TOKENS)
  })

  t.test('a revocation reaches a running store', async (t) => {
    const [{ store: one }, { store: two }] = [await open(t), await open(t)]
    await one.revoke({ kind: 'subject', value: 'ada' })
    await eventually(() => two.isRevoked(sessionAt(START_MS)))
    t.equal(two.isRevoked(sessionAt(START_MS + 1)), false, 'a later session is not revoked')
  })

  t.test('a store that is opened later has the revocation', async (t) => {
    const { store } = await open(t)
    await store.revoke({ kind: 'subject', value: 'ada' })
    t.equal((await open(t)).store.isRevoked(sessionAt(START_MS)), true)
  })

  t.test('Redis contains no readable token', async (t) => {
    const { store } = await open(t)
    await store.saveTokens('one', { ...TOKENS, idToken: 'readable' })
    await store.runOnce('a', async () => 'readable')
    for (const key of await client.keys('*')) t.notMatch(await client.get(key), /readable/)
  })
})
