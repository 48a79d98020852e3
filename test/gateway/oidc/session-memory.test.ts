import t from 'tap'
import { keyOf } from '../../../src/gateway/oidc/cluster.js'
import { LocalSessionMemory } from '../../../src/gateway/oidc/session-memory.js'

const DAY_MS = 24 * 3600 * 1000

const memoryAt = (start: number) => {
  const time = { now: start, stepMs: 0 }
  const memory = new LocalSessionMemory(
    () => time.now + time.stepMs,
    () => time.now
  )
  return { time, memory }
}

const session = (startedAt: number, names: object = {}) => ({
  id: 'one',
  subject: 'ada',
  email: 'ada@example.com',
  name: 'Ada',
  groups: [],
  providerSession: 'p1',
  startedAt,
  ...names
})

const TOKENS = { idToken: 'i', refreshToken: 'r', expiresAt: 0 }

t.test('work that many ask for', async (t) => {
  t.test('a result is handed out for ten seconds whatever is done to the system clock', async (t) => {
    const { time, memory } = memoryAt(1000)
    let done = 0
    const work = async () => ++done
    await memory.once('a', work)
    time.stepMs = 3_600_000
    t.equal(await memory.once('a', work), 1)
    time.stepMs = -3_600_000
    time.now += 10_000
    t.equal(await memory.once('a', work), 2)
  })

  t.test('is done once, and its result is handed to who comes up to ten seconds late', async (t) => {
    const { time, memory } = memoryAt(1000)
    let done = 0
    const work = async () => ++done
    t.same(await Promise.all([memory.once('a', work), memory.once('a', work), memory.once('b', work)]), [1, 1, 2])
    time.now += 9_999
    t.equal(await memory.once('a', work), 1)
    time.now += 1
    t.equal(await memory.once('a', work), 3)
  })

  t.test('is done again by the next one where it failed', async (t) => {
    const { memory } = memoryAt(1000)
    await t.rejects(memory.once('a', async () => Promise.reject(new Error('no'))))
    t.equal(await memory.once('a', async () => 'yes'), 'yes')
  })
})

t.test('tokens', async (t) => {
  t.test('are kept for a day, and no longer for being renewed', async (t) => {
    const { time, memory } = memoryAt(1000)
    await memory.keepTokens('one', TOKENS)
    time.now += DAY_MS / 2
    await memory.keepTokens('one', { ...TOKENS, refreshToken: 'r2' })
    t.match(await memory.tokensOf('one'), { refreshToken: 'r2' })
    time.now += DAY_MS / 2
    t.equal(await memory.tokensOf('one'), null)
  })

  t.test('of ten thousand sessions are kept; then the oldest go', async (t) => {
    const { memory } = memoryAt(1000)
    for (let index = 0; index <= 10_000; index += 1) await memory.keepTokens(`s${index}`, TOKENS)
    t.equal(await memory.tokensOf('s0'), null)
    t.ok(await memory.tokensOf('s1'))
    t.ok(await memory.tokensOf('s10000'))
  })

  t.test('are forgotten with the end of their session', async (t) => {
    const { memory } = memoryAt(1000)
    await memory.keepTokens('one', TOKENS)
    await memory.end({ kind: 'id', value: 'one' })
    t.equal(await memory.tokensOf('one'), null)
  })
})

t.test('an end', async (t) => {
  const NAMES = [
    [{ kind: 'id', value: 'one' }, { id: 'two' }],
    [{ kind: 'subject', value: 'ada' }, { subject: 'bob' }],
    [{ kind: 'providerSession', value: 'p1' }, { providerSession: null }]
  ] as const
  for (const [name, other] of NAMES) {
    t.test(`by ${name.kind} holds for what began up to then, and for nobody else`, async (t) => {
      const { memory } = memoryAt(5000)
      t.equal(memory.hasEnded(session(4000)), false)
      await memory.end(name)
      t.equal(memory.hasEnded(session(4000)), true)
      t.equal(memory.hasEnded(session(5000)), true)
      t.equal(memory.hasEnded(session(5001)), false)
      t.equal(memory.hasEnded(session(4000, other)), false)
    })
  }

  t.test('that is heard of twice, or late, stays the latest', async (t) => {
    const { memory } = memoryAt(5000)
    const key = keyOf({ kind: 'subject', value: 'ada' })
    memory.ended.note({ key, at: 5000 })
    memory.ended.note({ key, at: 3000 })
    t.equal(memory.hasEnded(session(4000)), true)
  })
})
