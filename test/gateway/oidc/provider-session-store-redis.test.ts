import t, { type Test } from 'tap'
import { MemoryProviderSessionStore } from '../../../src/gateway/oidc/provider-session-store.js'
import { RedisProviderSessionStore } from '../../../src/gateway/oidc/provider-session-store-redis.js'
import { Sealer } from '../../../src/gateway/oidc/sealer.js'
import { eventually } from '../../helper/eventually.js'
import { startContractRedis } from '../../helper/redis-time.js'
import {
  START_MS,
  type StoreUnderTest,
  sessionAt,
  TOKENS,
  testProviderSessionStore
} from './provider-session-store-contract.js'

const { client, connection, startClock } = await startContractRedis(t)

const open = async (t: Test): Promise<StoreUnderTest> => {
  const { now, advance } = startClock(START_MS)
  const store = new RedisProviderSessionStore({
    ...connection,
    realm: 'test',
    local: new MemoryProviderSessionStore(now, now),
    sealer: new Sealer({ secrets: ['a-secret-for-tests'], purpose: 'test', now, maxCharacters: 10_000 }),
    now
  })
  t.teardown(() => store.close())
  await store.ready()
  return { store, advance }
}

t.test('RedisProviderSessionStore', async (t) => {
  testProviderSessionStore(t, open)

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
