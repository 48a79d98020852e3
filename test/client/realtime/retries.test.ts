import t from 'tap'
import { backoffMs } from '../../../src/client/backoff.js'
import { Retries } from '../../../src/client/realtime/retries.js'
import { FakeClock } from '../../helper/fake-clock.js'

const setUp = () => {
  const clock = new FakeClock()
  const retries = new Retries(clock, () => 1)
  /** Schedules an attempt and returns the delay until it runs. */
  const delay = (name: string): number => {
    let ranAtMs: number | null = null
    const startMs = clock.now()
    retries.later(name, () => {
      ranAtMs = clock.now()
    })
    while (ranAtMs === null) clock.advance(100)
    return ranAtMs - startMs
  }
  return { clock, retries, delay }
}

t.test('retries', async (t) => {
  t.test('the delay doubles with every failure up to 20 seconds', async (t) => {
    const { delay } = setUp()
    t.same(
      Array.from({ length: 8 }, () => delay('a')),
      [500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000]
    )
  })

  t.test('each name has its own delay', async (t) => {
    const { delay } = setUp()
    t.same([delay('a'), delay('a'), delay('b')], [500, 1000, 500])
  })

  t.test('only a lasting success resets the delay', async (t) => {
    const { clock, retries, delay } = setUp()
    delay('a')
    retries.succeeded('a')
    clock.advance(19_999)
    t.equal(delay('a'), 1000)
    retries.succeeded('a')
    clock.advance(20_000)
    t.equal(delay('a'), 500)
  })

  t.test('clear cancels all attempts', async (t) => {
    const { clock, retries } = setUp()
    for (const name of ['a', 'b', 'b']) retries.later(name, () => t.fail('was cancelled'))
    t.equal(clock.pendingTimers, 2)
    retries.clear()
    t.equal(clock.pendingTimers, 0)
  })

  t.test('the jitter is half of the delay', async (t) => {
    t.same(
      [0, 0.5, 1].map((random) => backoffMs(2, { minMs: 1000, maxMs: 60_000, random: () => random })),
      [1000, 1500, 2000]
    )
    t.equal(backoffMs(0, { random: () => 1 }), 500)
    t.equal(backoffMs(2000, { random: () => 1 }), 20_000)
  })
})
