import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type ChannelStates, EngineError } from '../../../src/relay/core/engine.js'
import { MemoryPresence } from '../../../src/relay/engine/memory-presence.js'
import { WebhookSender } from '../../../src/relay/webhooks/webhook-sender.js'
import { STATE_RULES } from '../../helper/channel-state-rules.js'
import { FakeClock } from '../../helper/fake-clock.js'
import { recordedLog } from '../../helper/recorded-log.js'

const OPTIONS = { timeoutMs: 1_000, batchSize: 100, isSelected: () => true }

/** A sender with a fake clock. `answers` says which requests succeed. */
const setUp = (t: Test, answers: (request: number) => boolean, change: Partial<ChannelStates> = {}) => {
  const clock = new FakeClock()
  const presence = new MemoryPresence({ nowMs: () => clock.now(), monotonicMs: () => clock.now() })
  const { channelStates } = presence
  channelStates.configure(STATE_RULES)
  const { lines, log } = recordedLog()
  const requests: { readonly at: number; readonly channels: readonly string[] }[] = []
  const start = clock.now()
  const states: ChannelStates = {
    configure: () => undefined,
    take: (...args) => channelStates.take(...args),
    confirm: (...args) => channelStates.confirm(...args),
    release: (...args) => channelStates.release(...args),
    countDue: (proxy) => channelStates.countDue(proxy),
    onDue: (listener) => channelStates.onDue(listener),
    ...change
  }
  const sender = new WebhookSender('default', OPTIONS, {
    states,
    send: async (_, body) => {
      const events: readonly { readonly channel: string }[] = JSON.parse(body).events
      requests.push({ at: clock.now() - start, channels: events.map(({ channel }) => channel).sort() })
      return answers(requests.length)
    },
    setTimer: (task, ms) => clock.after(ms, task),
    log
  })
  channelStates.onDue(() => sender.wake())
  t.teardown(() => sender.close())
  const advance = async (ms: number): Promise<void> => {
    await setImmediate()
    clock.advance(ms)
    await setImmediate()
  }
  return { presence, requests, lines, advance, sender, channelStates, clock }
}

t.test('the wait after a failed request doubles from 100 ms to 20 s', async (t) => {
  const { presence, requests, advance } = setUp(t, () => false)
  await presence.add('room:1', 'c1', 'ada', '{}')
  for (let ms = 0; ms < 200_000; ms += 100) await advance(100)
  const waits = requests.slice(1).map(({ at }, index) => at - (requests[index]?.at ?? 0))

  t.same(waits.slice(0, 11), [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 20_000, 20_000, 20_000])
})

t.test('a new event waits with the failed ones, and the wait starts again after a success', async (t) => {
  const { presence, requests, advance } = setUp(t, (request) => request > 3)
  await presence.add('room:1', 'c1', 'ada', '{}')
  await advance(100)
  await presence.add('room:2', 'c1', 'ada', '{}')
  await advance(100)
  t.equal(requests.length, 2)
  await advance(100)
  await advance(400)
  t.same(requests.at(-1)?.channels, ['room:1', 'room:2'])
  await presence.add('room:3', 'c1', 'ada', '{}')
  await advance(0)

  t.same(requests.at(-1)?.channels, ['room:3'])
})

t.test(
  'the memory of a failing backend is bounded by the channels that are occupied or were reported so',
  async (t) => {
    const { presence, requests, advance, channelStates } = setUp(t, () => false)
    await presence.add('room:kept', 'c1', 'ada', '{}')
    await advance(0)
    for (let n = 0; n < 5000; n++) {
      await presence.add(`room:${n}`, 'c1', 'ada', '{}')
      await presence.remove(`room:${n}`, 'c1')
    }

    t.equal(requests.length, 1)
    t.equal(channelStates.size, 1)
  }
)

t.test('a failing engine is asked again', async (t) => {
  let failures = 2
  const { presence, requests, advance, channelStates, lines } = setUp(t, () => true, {
    take: async (...args) => {
      if (failures > 0) throw failures-- > 1 ? new EngineError('down') : new TypeError('unexpected')
      return channelStates.take(...args)
    }
  })
  await presence.add('room:1', 'c1', 'ada', '{}')
  for (let n = 0; n < 4; n++) await advance(1_000)

  t.same(
    requests.map(({ channels }) => channels),
    [['room:1']]
  )
  t.match(lines, [{ msg: 'webhook events not processed', err: { message: 'unexpected' } }])
})

t.test('a sender that is closed while it waits ends', async (t) => {
  const { sender, presence, requests, advance } = setUp(t, () => true)
  await advance(0)
  await sender.close()
  await presence.add('room:1', 'c1', 'ada', '{}')
  await advance(10_000)

  t.equal(requests.length, 0)
})
