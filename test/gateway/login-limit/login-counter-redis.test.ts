import t, { type Test } from 'tap'
import { MemoryLoginCounter } from '../../../src/gateway/login-limit/login-counter.js'
import { RedisLoginCounter } from '../../../src/gateway/login-limit/login-counter-redis.js'
import { startContractRedis } from '../../helper/redis-time.js'
import { type CounterUnderTest, testLoginCounter, WINDOW_MS } from './login-counter-contract.js'

const { client, connection, startClock } = await startContractRedis(t)

interface RedisCounterUnderTest extends CounterUnderTest {
  readonly counter: RedisLoginCounter
}

const open = async (t: Test): Promise<RedisCounterUnderTest> => {
  const { now, advance } = startClock(1_000)
  const local = new MemoryLoginCounter({ windowMs: WINDOW_MS, now })
  const counter = new RedisLoginCounter({ ...connection, windowMs: WINDOW_MS, local })
  t.teardown(() => {
    counter.close()
    local.close()
  })
  await counter.ready()
  return { counter, advance }
}

t.test('RedisLoginCounter', async (t) => {
  testLoginCounter(t, open)

  t.test('two counters share one count under concurrency', async (t) => {
    const counters = [await open(t), await open(t)]
    const counts = await Promise.all(
      counters.flatMap(({ counter }) => Array.from({ length: 10 }, () => counter.increment('a')))
    )
    t.same(
      counts.map(({ current }) => current).sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, index) => index + 1)
    )
  })

  t.test('a counter opened later continues the count', async (t) => {
    const { counter } = await open(t)
    for (let attempt = 1; attempt <= 4; attempt++) await counter.increment('a')
    t.equal((await (await open(t)).counter.increment('a')).current, 5)
  })

  t.test('a count that has lost its expiry gets one again', async (t) => {
    const { counter } = await open(t)
    await counter.increment('a')
    await client.persist('gatehouse:login:a')

    const { current, ttl } = await counter.increment('a')

    t.equal(current, 2)
    t.ok(ttl > 0 && ttl <= WINDOW_MS, `${ttl} ms`)
    t.ok((await client.pttl('gatehouse:login:a')) > 0)
  })

  t.test('the count stays when Redis loses its data', async (t) => {
    const { counter } = await open(t)
    for (let attempt = 1; attempt <= 4; attempt++) await counter.increment('a')
    await client.flushall()
    t.equal((await counter.increment('a')).current, 5)
  })
})
