import t from 'tap'
import { MemoryProviderSessionStore, selectorKey } from '../../../src/gateway/oidc/provider-session-store.js'
import { DAY_MS, START_MS, sessionAt, TOKENS, testProviderSessionStore } from './provider-session-store-contract.js'

/** A store with two clocks that the test controls; `stepMs` changes the wall clock only. */
const open = () => {
  const time = { ms: START_MS, stepMs: 0 }
  const store = new MemoryProviderSessionStore(
    () => time.ms + time.stepMs,
    () => time.ms
  )
  return {
    time,
    store,
    advance: (ms: number): void => {
      time.ms += ms
    }
  }
}

t.test('MemoryProviderSessionStore', async (t) => {
  testProviderSessionStore(t, open)

  t.test('the reuse of a result does not depend on the system clock', async (t) => {
    const { time, store, advance } = open()
    let runs = 0
    const work = async () => ++runs
    await store.runOnce('a', work)
    time.stepMs = 3_600_000
    t.equal(await store.runOnce('a', work), 1)
    time.stepMs = -3_600_000
    advance(9_999)
    t.equal(await store.runOnce('a', work), 1)
    advance(1)
    t.equal(await store.runOnce('a', work), 2)
  })

  t.test('saving refreshed tokens does not extend their lifetime', async (t) => {
    const { store, advance } = open()
    await store.saveTokens('one', TOKENS)
    advance(DAY_MS / 2)
    await store.saveTokens('one', { ...TOKENS, refreshToken: 'r2' })
    advance(DAY_MS / 2)
    t.equal(await store.loadTokens('one'), null)
  })

  t.test('the tokens of ten thousand sessions are stored, and the oldest are evicted first', async (t) => {
    const { store } = open()
    for (let index = 0; index <= 10_000; index += 1) await store.saveTokens(`s${index}`, TOKENS)
    t.equal(await store.loadTokens('s0'), null)
    t.ok(await store.loadTokens('s1'))
    t.ok(await store.loadTokens('s10000'))
  })

  t.test('a revocation that arrives out of order does not replace a later one', async (t) => {
    const { store } = open()
    const key = selectorKey({ kind: 'subject', value: 'ada' })
    store.revocations.add({ key, at: START_MS })
    store.revocations.add({ key, at: START_MS - 2_000 })
    t.equal(store.isRevoked(sessionAt(START_MS - 1_000)), true)
  })

  t.test('the keys of revocations are those of earlier versions, which share them through Redis', async (t) => {
    t.match(selectorKey({ kind: 'sid', value: 'p1' }), /^providerSession:/)
    for (const kind of ['id', 'subject', 'unnamedOfSubject', 'message'] as const)
      t.match(selectorKey({ kind, value: 'p1' }), new RegExp(`^${kind}:`))
  })
})
