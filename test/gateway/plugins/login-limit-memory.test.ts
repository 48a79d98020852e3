import t, { type Test } from 'tap'
import { MemoryAttempts, type MemoryAttemptsOptions } from '../../../src/gateway/plugins/login-limit.js'

const WINDOW_MS = 900_000
const LIMIT = 5

/** Counts of which the test holds the clock. */
const startCounts = (t: Test, options: Omit<MemoryAttemptsOptions, 'windowMs' | 'now'> = {}) => {
  let time = 1_000
  const attempts = new MemoryAttempts({ windowMs: WINDOW_MS, now: () => time, ...options })
  t.teardown(() => attempts.close())
  return {
    attempts,
    pass: (ms: number): void => {
      time += ms
    }
  }
}

/** So many keys that nobody has used before, each of them this often. */
const flood = (attempts: MemoryAttempts, keys: number, times = 1, name = 'flood'): void => {
  for (let key = 0; key < keys; key++) {
    for (let time = 0; time < times; time++) attempts.add(`${name}-${key}`)
  }
}

t.test('MemoryAttempts', async (t) => {
  t.test('counts the attempts of a key', async (t) => {
    const { attempts } = startCounts(t)

    for (let current = 1; current <= 7; current++) t.same(attempts.add('a'), { current, ttl: WINDOW_MS })
  })

  t.test('counts every key on its own', async (t) => {
    const { attempts } = startCounts(t)

    for (let time = 0; time < 6; time++) attempts.add('a')

    t.equal(attempts.add('b').current, 1)
    t.equal(attempts.add('a').current, 7)
    t.equal(attempts.size, 2)
  })

  t.test('begins the window with the first attempt, and no later one moves its end', async (t) => {
    const { attempts, pass } = startCounts(t)

    t.same(attempts.add('a'), { current: 1, ttl: WINDOW_MS })
    pass(WINDOW_MS - 1_000)
    t.same(attempts.add('a'), { current: 2, ttl: 1_000 })
    pass(999)
    t.same(attempts.add('a'), { current: 3, ttl: 1 })
    pass(1)
    t.same(attempts.add('a'), { current: 1, ttl: WINDOW_MS }, 'a new window')
  })

  t.test('ends the window of each key at its own time', async (t) => {
    const { attempts, pass } = startCounts(t)

    attempts.add('a')
    pass(WINDOW_MS / 2)
    attempts.add('b')
    pass(WINDOW_MS / 2)

    t.equal(attempts.add('b').current, 2)
    t.equal(attempts.add('a').current, 1)
  })

  t.test('does not follow the clock of the system', async (t) => {
    let shift = 0
    const realNow = Date.now
    t.intercept(Date, 'now', { value: () => realNow() + shift })
    const attempts = new MemoryAttempts({ windowMs: WINDOW_MS })
    t.teardown(() => attempts.close())
    attempts.add('a')

    shift = 2 * WINDOW_MS
    t.equal(attempts.add('a').current, 2, 'set forward, it ends no window')
    shift = -2 * WINDOW_MS
    const { current, ttl } = attempts.add('a')
    t.equal(current, 3)
    t.ok(ttl <= WINDOW_MS, 'set back, it makes none longer')
  })
})

t.test('the sweep', async (t) => {
  t.test('forgets the windows that have ended, and only those', async (t) => {
    const { attempts, pass } = startCounts(t)
    flood(attempts, 10)
    pass(WINDOW_MS - 1)
    attempts.add('late')

    attempts.sweep()
    t.equal(attempts.size, 11, 'none has ended')

    pass(1)
    attempts.sweep()
    t.equal(attempts.size, 1)
    t.equal(attempts.add('late').current, 2)
  })

  t.test('happens every five minutes, without any attempt', async (t) => {
    const timers = t.capture(globalThis, 'setInterval', () => ({ unref: () => undefined }))
    const { attempts, pass } = startCounts(t)
    const [[sweep, everyMs] = []] = timers().map(({ args }) => args)
    flood(attempts, 10)

    pass(WINDOW_MS)
    sweep?.()

    t.equal(everyMs, 300_000)
    t.equal(attempts.size, 0)
  })

  t.test('does not keep the process alive', async (t) => {
    let unrefs = 0
    t.intercept(globalThis, 'setInterval', { value: () => ({ unref: () => unrefs++ }) })

    startCounts(t)

    t.equal(unrefs, 1)
  })
})

t.test('close forgets everything', async (t) => {
  const { attempts } = startCounts(t)
  flood(attempts, 10)

  attempts.close()

  t.equal(attempts.size, 0)
})

t.test('a flood of keys', async (t) => {
  t.test('cannot make the counts grow past their bound', async (t) => {
    const { attempts } = startCounts(t)

    flood(attempts, 100_000)
    t.equal(attempts.size, 100_000, 'up to here each has a count of its own')
    flood(attempts, 100_000, 1, 'more')
    t.ok(attempts.size > 100_000, 'the others share counts')
    t.ok(attempts.size <= 100_000 + 4096, `${attempts.size} counts`)
  })

  t.test('uses every shared count before long, and never one more', async (t) => {
    const { attempts } = startCounts(t, { maxKeys: 100, sharedCounts: 8 })

    flood(attempts, 2_000)

    t.equal(attempts.size, 108)
  })

  t.test('takes no count away from those that came before it', async (t) => {
    const { attempts } = startCounts(t, { maxKeys: 10_000 })
    for (let time = 0; time < 3; time++) attempts.add('honest')

    flood(attempts, 5_000, 1, 'first')
    t.equal(attempts.add('honest').current, 4, 'while there is room')
    flood(attempts, 5_000, 1, 'second')
    t.equal(attempts.add('honest').current, 5, 'when it is full')
    flood(attempts, 10_000, 1, 'third')
    t.equal(attempts.add('honest').current, 6, 'when it is full twice over')
  })

  t.test('adds nothing to the counts of those that came before it', async (t) => {
    const { attempts } = startCounts(t, { maxKeys: 100, sharedCounts: 8 })
    attempts.add('honest')

    flood(attempts, 2_000)

    t.equal(attempts.add('honest').current, 2)
  })

  t.test('does not free a newcomer from the limit', async (t) => {
    const { attempts } = startCounts(t, { maxKeys: 100 })
    flood(attempts, 100)

    for (let current = 1; current <= 7; current++) t.equal(attempts.add('newcomer').current, current)
  })

  t.test('does not free the attacker from it, who has used up every count', async (t) => {
    const { attempts } = startCounts(t, { maxKeys: 100, sharedCounts: 8 })
    flood(attempts, 2_000)

    for (const key of ['flood-0', 'flood-1999', 'fresh']) {
      for (let time = 0; time < LIMIT; time++) attempts.add(key)
      t.ok(attempts.add(key).current > LIMIT, key)
    }
  })

  t.test('locks out few newcomers when it has used up few of the shared counts', async (t) => {
    const { attempts } = startCounts(t, { maxKeys: 100 })
    flood(attempts, 100)
    // At most 20 of 4096: one newcomer in two hundred meets one of them.
    flood(attempts, 20, 50, 'heavy')

    const newcomers = Array.from({ length: 100 }, (_, index) => attempts.add(`newcomer-${index}`))
    const lockedOut = newcomers.filter(({ current }) => current > LIMIT)

    t.ok(lockedOut.length < 20, `${lockedOut.length} of 100 newcomers are locked out`)
  })

  t.test('makes those share a count that come too late for one of their own', async (t) => {
    const { attempts } = startCounts(t, { maxKeys: 2, sharedCounts: 1 })
    attempts.add('a')
    attempts.add('b')

    t.equal(attempts.add('c').current, 1)
    t.equal(attempts.add('d').current, 2)
    t.equal(attempts.add('c').current, 3)
    t.equal(attempts.add('a').current, 2, 'not those that have one')
  })

  t.test('is over when its windows end', async (t) => {
    const { attempts, pass } = startCounts(t, { maxKeys: 100, sharedCounts: 8 })
    flood(attempts, 2_000)

    pass(WINDOW_MS)

    t.same(attempts.add('newcomer'), { current: 1, ttl: WINDOW_MS })
    t.same(attempts.add('flood-1999'), { current: 1, ttl: WINDOW_MS })
    t.equal(attempts.size, 2, 'each has its own count again')
  })

  t.test('gives nobody a second start when there is room again before a shared count ends', async (t) => {
    const { attempts, pass } = startCounts(t, { maxKeys: 2, sharedCounts: 1 })
    flood(attempts, 2)
    pass(WINDOW_MS / 2)
    for (let time = 0; time < LIMIT; time++) attempts.add('late')

    pass(WINDOW_MS / 2)
    t.same(attempts.add('late'), { current: LIMIT + 1, ttl: WINDOW_MS / 2 }, 'there is room')

    pass(WINDOW_MS / 2)
    t.same(attempts.add('late'), { current: 1, ttl: WINDOW_MS }, 'its window has ended')
  })
})
