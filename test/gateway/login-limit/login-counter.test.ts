import t, { type Test } from 'tap'
import { MemoryLoginCounter, type MemoryLoginCounterOptions } from '../../../src/gateway/login-limit/login-counter.js'
import { testLoginCounter, WINDOW_MS } from './login-counter-contract.js'

const LIMIT = 5

/** A counter with a clock that the test controls. */
const open = (t: Test, options: Omit<MemoryLoginCounterOptions, 'windowMs' | 'now'> = {}) => {
  let time = 1_000
  const counter = new MemoryLoginCounter({ windowMs: WINDOW_MS, now: () => time, ...options })
  t.teardown(() => counter.close())
  return {
    counter,
    advance: (ms: number): void => {
      time += ms
    }
  }
}

/** Counts `times` attempts for each of `keys` new keys. */
const flood = (counter: MemoryLoginCounter, keys: number, times = 1, name = 'flood'): void => {
  for (let key = 0; key < keys; key++) {
    for (let time = 0; time < times; time++) counter.increment(`${name}-${key}`)
  }
}

t.test('MemoryLoginCounter', async (t) => {
  testLoginCounter(t, (t) => open(t))

  t.test('a window ends exactly after its length', async (t) => {
    const { counter, advance } = open(t)
    t.same(counter.increment('a'), { current: 1, ttl: WINDOW_MS })
    advance(WINDOW_MS - 1)
    t.same(counter.increment('a'), { current: 2, ttl: 1 })
    advance(1)
    t.same(counter.increment('a'), { current: 1, ttl: WINDOW_MS })
  })

  t.test('windows do not depend on the system clock', async (t) => {
    let shift = 0
    const realNow = Date.now
    t.intercept(Date, 'now', { value: () => realNow() + shift })
    const counter = new MemoryLoginCounter({ windowMs: WINDOW_MS })
    t.teardown(() => counter.close())
    counter.increment('a')

    shift = 2 * WINDOW_MS
    t.equal(counter.increment('a').current, 2, 'a clock set forward ends no window')
    shift = -2 * WINDOW_MS
    const { current, ttl } = counter.increment('a')
    t.equal(current, 3)
    t.ok(ttl <= WINDOW_MS, 'a clock set back extends no window')
  })
})

t.test('sweep', async (t) => {
  t.test('the sweep removes only the windows that have ended', async (t) => {
    const { counter, advance } = open(t)
    flood(counter, 10)
    advance(WINDOW_MS - 1)
    counter.increment('late')

    counter.sweep()
    t.equal(counter.size, 11, 'none has ended')

    advance(1)
    counter.sweep()
    t.equal(counter.size, 1)
    t.equal(counter.increment('late').current, 2)
  })

  t.test('the sweep runs every five minutes without an attempt', async (t) => {
    const timers = t.capture(globalThis, 'setInterval', () => ({ unref: () => undefined }))
    const { counter, advance } = open(t)
    const [[sweep, everyMs] = []] = timers().map(({ args }) => args)
    flood(counter, 10)

    advance(WINDOW_MS)
    sweep?.()

    t.equal(everyMs, 300_000)
    t.equal(counter.size, 0)
  })

  t.test('the sweep timer does not keep the process alive', async (t) => {
    let unrefs = 0
    t.intercept(globalThis, 'setInterval', { value: () => ({ unref: () => unrefs++ }) })

    open(t)

    t.equal(unrefs, 1)
  })
})

t.test('close removes all counts', async (t) => {
  const { counter } = open(t)
  flood(counter, 10)

  counter.close()

  t.equal(counter.size, 0)
})

t.test('a flood of keys', async (t) => {
  t.test('a flood of keys does not exceed the maximum number of counts', async (t) => {
    const { counter } = open(t)

    flood(counter, 100_000)
    t.equal(counter.size, 100_000, 'each key has its own count')
    flood(counter, 100_000, 1, 'more')
    t.ok(counter.size > 100_000, 'further keys share counts')
    t.ok(counter.size <= 100_000 + 4096, `${counter.size} counts`)
  })

  t.test('a flood of keys uses all shared counts and no more', async (t) => {
    const { counter } = open(t, { maxKeys: 100, sharedCounts: 8 })

    flood(counter, 2_000)

    t.equal(counter.size, 108)
  })

  t.test('a flood of keys does not remove existing counts', async (t) => {
    const { counter } = open(t, { maxKeys: 10_000 })
    for (let time = 0; time < 3; time++) counter.increment('honest')

    flood(counter, 5_000, 1, 'first')
    t.equal(counter.increment('honest').current, 4, 'table half full')
    flood(counter, 5_000, 1, 'second')
    t.equal(counter.increment('honest').current, 5, 'table full')
    flood(counter, 10_000, 1, 'third')
    t.equal(counter.increment('honest').current, 6, 'twice as many keys as entries')
  })

  t.test('a flood of keys does not add to existing counts', async (t) => {
    const { counter } = open(t, { maxKeys: 100, sharedCounts: 8 })
    counter.increment('honest')

    flood(counter, 2_000)

    t.equal(counter.increment('honest').current, 2)
  })

  t.test('a new client is limited after a flood of keys', async (t) => {
    const { counter } = open(t, { maxKeys: 100 })
    flood(counter, 100)

    for (let current = 1; current <= 7; current++) t.equal(counter.increment('client').current, current)
  })

  t.test('an attacker who used all shared counts is still limited', async (t) => {
    const { counter } = open(t, { maxKeys: 100, sharedCounts: 8 })
    flood(counter, 2_000)

    for (const key of ['flood-0', 'flood-1999', 'fresh']) {
      for (let time = 0; time < LIMIT; time++) counter.increment(key)
      t.ok(counter.increment(key).current > LIMIT, key)
    }
  })

  t.test('an attacker who used few shared counts blocks few new clients', async (t) => {
    const { counter } = open(t, { maxKeys: 100 })
    flood(counter, 100)
    // At most 20 of 4096 counts: one new client in two hundred gets one of them.
    flood(counter, 20, 50, 'heavy')

    const clients = Array.from({ length: 100 }, (_, index) => counter.increment(`client-${index}`))
    const blocked = clients.filter(({ current }) => current > LIMIT)

    t.ok(blocked.length < 20, `${blocked.length} of 100 new clients are blocked`)
  })

  t.test('keys that do not fit share a count', async (t) => {
    const { counter } = open(t, { maxKeys: 2, sharedCounts: 1 })
    counter.increment('a')
    counter.increment('b')

    t.equal(counter.increment('c').current, 1)
    t.equal(counter.increment('d').current, 2)
    t.equal(counter.increment('c').current, 3)
    t.equal(counter.increment('a').current, 2, 'an own count is not shared')
  })

  t.test('a flood of keys has no effect after its windows have ended', async (t) => {
    const { counter, advance } = open(t, { maxKeys: 100, sharedCounts: 8 })
    flood(counter, 2_000)

    advance(WINDOW_MS)

    t.same(counter.increment('client'), { current: 1, ttl: WINDOW_MS })
    t.same(counter.increment('flood-1999'), { current: 1, ttl: WINDOW_MS })
    t.equal(counter.size, 2, 'each key has its own count again')
  })

  t.test('a key in a shared window does not start a new one when there is space again', async (t) => {
    const { counter, advance } = open(t, { maxKeys: 2, sharedCounts: 1 })
    flood(counter, 2)
    advance(WINDOW_MS / 2)
    for (let time = 0; time < LIMIT; time++) counter.increment('late')

    advance(WINDOW_MS / 2)
    t.same(counter.increment('late'), { current: LIMIT + 1, ttl: WINDOW_MS / 2 }, 'there is space')

    advance(WINDOW_MS / 2)
    t.same(counter.increment('late'), { current: 1, ttl: WINDOW_MS }, 'its window has ended')
  })
})
