import type { Test } from 'tap'
import type { ProviderSession } from '../../../src/gateway/oidc/provider-session-cookie.js'
import type { ProviderSessionStore } from '../../../src/gateway/oidc/provider-session-store.js'

export const DAY_MS = 24 * 3600 * 1000
export const START_MS = 1_763_200_000_000

export const TOKENS = { idToken: 'i', refreshToken: 'r', expiresAt: 0 }

export interface StoreUnderTest {
  readonly store: ProviderSessionStore
  /** Advances the wall clock and the monotonic clock. */
  advance(ms: number): Promise<void> | void
}

export const sessionAt = (startedAt: number, overrides: Partial<ProviderSession> = {}): ProviderSession => ({
  id: 'one',
  provider: 'default',
  subject: 'ada',
  email: 'ada@example.com',
  name: 'Ada',
  groups: [],
  sid: 'p1',
  startedAt,
  ...overrides
})

/** What every implementation of `ProviderSessionStore` guarantees. The clock of an opened store is at `START_MS`. */
export const testProviderSessionStore = (
  t: Test,
  open: (t: Test) => Promise<StoreUnderTest> | StoreUnderTest
): void => {
  t.test('concurrent callers with one key share one run of the work', async (t) => {
    const { store } = await open(t)
    let runs = 0
    const work = async () => ++runs
    const results = await Promise.all([store.runOnce('a', work), store.runOnce('a', work)])
    t.same(results, [1, 1])
    t.equal(await store.runOnce('b', work), 2, 'another key runs its own work')
  })

  t.test('a result is reused for ten seconds', async (t) => {
    const { store, advance } = await open(t)
    let runs = 0
    const work = async () => ++runs
    await store.runOnce('a', work)
    await advance(4_000)
    t.equal(await store.runOnce('a', work), 1)
    await advance(6_000)
    t.equal(await store.runOnce('a', work), 2)
  })

  t.test('failed work is run again by the next caller', async (t) => {
    const { store } = await open(t)
    await t.rejects(store.runOnce('a', async () => Promise.reject(new Error('no'))))
    t.equal(await store.runOnce('a', async () => 'yes'), 'yes')
  })

  t.test('tokens are stored for a day', async (t) => {
    const { store, advance } = await open(t)
    t.equal(await store.loadTokens('one'), null)
    await store.saveTokens('one', TOKENS)
    await advance(DAY_MS / 2)
    t.same(await store.loadTokens('one'), TOKENS)
    await advance(DAY_MS / 2)
    t.equal(await store.loadTokens('one'), null)
  })

  t.test('saving tokens again replaces them', async (t) => {
    const { store } = await open(t)
    await store.saveTokens('one', TOKENS)
    await store.saveTokens('one', { ...TOKENS, refreshToken: 'r2' })
    t.match(await store.loadTokens('one'), { refreshToken: 'r2' })
  })

  t.test('revoking a session deletes its tokens', async (t) => {
    const { store } = await open(t)
    await store.saveTokens('one', TOKENS)
    await store.saveTokens('two', TOKENS)
    await store.revoke({ kind: 'id', value: 'one' })
    t.equal(await store.loadTokens('one'), null)
    t.same(await store.loadTokens('two'), TOKENS, 'other tokens stay')
  })

  const SELECTORS = [
    [{ kind: 'id', value: 'one' }, {}, { id: 'two' }],
    [{ kind: 'subject', value: 'ada' }, {}, { subject: 'bob' }],
    [{ kind: 'sid', value: 'p1' }, {}, { sid: null }],
    [{ kind: 'unnamedOfSubject', value: 'ada' }, { sid: null }, { sid: 'p1' }]
  ] as const
  for (const [selector, selected, other] of SELECTORS) {
    t.test(`a revocation by ${selector.kind} applies to selected sessions started until then`, async (t) => {
      const { store } = await open(t)
      t.equal(store.isRevoked(sessionAt(START_MS - 1, selected)), false)
      await store.revoke(selector)
      t.equal(store.isRevoked(sessionAt(START_MS - 1, selected)), true)
      t.equal(store.isRevoked(sessionAt(START_MS, selected)), true)
      t.equal(store.isRevoked(sessionAt(START_MS + 1, selected)), false)
      t.equal(store.isRevoked(sessionAt(START_MS - 1, other)), false)
    })
  }

  t.test('a revocation is found by its own selector only', async (t) => {
    const { store } = await open(t)
    await store.revoke({ kind: 'message', value: 'jti-1' })
    t.equal(store.hasRevocation({ kind: 'message', value: 'jti-1' }), true)
    t.equal(store.hasRevocation({ kind: 'message', value: 'jti-2' }), false)
    t.equal(store.hasRevocation({ kind: 'subject', value: 'jti-1' }), false)
  })
}
