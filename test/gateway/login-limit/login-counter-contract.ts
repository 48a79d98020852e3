import type { Test } from 'tap'
import type { LoginCounter } from '../../../src/gateway/login-limit/login-counter.js'

export const WINDOW_MS = 900_000

/** Redis measures windows in real time, so a remaining time may be shorter by what a test takes. */
const MAX_TEST_MS = 300_000

export interface CounterUnderTest {
  readonly counter: LoginCounter
  /** Advances the time by which windows end. */
  advance(ms: number): Promise<void> | void
}

/** What every implementation of `LoginCounter` guarantees. */
export const testLoginCounter = (t: Test, open: (t: Test) => Promise<CounterUnderTest> | CounterUnderTest): void => {
  const expectCount = async (
    t: Test,
    { counter }: CounterUnderTest,
    key: string,
    expected: { readonly current: number; readonly ttl: number }
  ): Promise<void> => {
    const { current, ttl } = await counter.increment(key)
    t.equal(current, expected.current, `attempt ${expected.current} of ${key}`)
    t.ok(ttl <= expected.ttl && ttl > expected.ttl - MAX_TEST_MS, `${ttl} ms of ${expected.ttl} ms are left`)
  }

  t.test('the counter counts the attempts of a key', async (t) => {
    const opened = await open(t)
    for (let current = 1; current <= 7; current++) await expectCount(t, opened, 'a', { current, ttl: WINDOW_MS })
  })

  t.test('the counter counts each key separately', async (t) => {
    const opened = await open(t)
    for (let current = 1; current <= 6; current++) await expectCount(t, opened, 'a', { current, ttl: WINDOW_MS })
    await expectCount(t, opened, 'b', { current: 1, ttl: WINDOW_MS })
    await expectCount(t, opened, 'a', { current: 7, ttl: WINDOW_MS })
  })

  t.test('a window starts with the first attempt, and later attempts do not extend it', async (t) => {
    const opened = await open(t)
    await expectCount(t, opened, 'a', { current: 1, ttl: WINDOW_MS })
    await opened.advance(WINDOW_MS / 3)
    await expectCount(t, opened, 'a', { current: 2, ttl: (WINDOW_MS * 2) / 3 })
    await opened.advance((WINDOW_MS * 2) / 3)
    await expectCount(t, opened, 'a', { current: 1, ttl: WINDOW_MS })
  })

  t.test('the windows of two keys end independently', async (t) => {
    const opened = await open(t)
    await expectCount(t, opened, 'a', { current: 1, ttl: WINDOW_MS })
    await opened.advance(WINDOW_MS / 2)
    await expectCount(t, opened, 'b', { current: 1, ttl: WINDOW_MS })
    await opened.advance(WINDOW_MS / 2)
    await expectCount(t, opened, 'b', { current: 2, ttl: WINDOW_MS / 2 })
    await expectCount(t, opened, 'a', { current: 1, ttl: WINDOW_MS })
  })

  t.test('concurrent attempts get different counts', async (t) => {
    const { counter } = await open(t)
    const counts = await Promise.all(Array.from({ length: 20 }, async () => counter.increment('a')))
    t.same(
      counts.map(({ current }) => current).sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, index) => index + 1)
    )
  })
}
