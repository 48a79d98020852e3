import t from 'tap'
import { type ResolvedChannel, resolveChannel } from '../../../../src/relay/core/channel-names.js'
import { ERROR_EMPTY_CHANNEL, ERROR_INTERNAL, ERROR_IS_MAP, ReplyError } from '../../../../src/relay/core/codes.js'
import { type Broker, EngineError } from '../../../../src/relay/core/engine.js'
import type { NewPublication, Published } from '../../../../src/relay/core/publication.js'
import { PLAIN_PUBLICATION } from '../../../../src/relay/core/publish/publish.js'
import { PublishActivity } from '../../../../src/relay/core/publish/publish-activity.js'
import { TimeSlice } from '../../../../src/relay/core/time-slice.js'
import { coreRelay, withNamespace } from '../../../helper/relay-core.js'
import { configOf } from '../../../helper/relay-rules.js'
import { required } from '../../../helper/required.js'

const { channels } = configOf(withNamespace({ history_size: 2, history_ttl: '10s' }))

const resolve = (channel: string): ResolvedChannel => {
  const resolved = resolveChannel(channel, channels)
  if (resolved instanceof ReplyError) throw new Error(resolved.message)
  return resolved
}

/** The activity of a channel after publications at these times. */
const activityAfter = (times: readonly number[]) => {
  const activity = new PublishActivity()
  for (const nowMs of times) activity.published('chat:1', resolve('chat:1'), nowMs, true)
  return required(activity.channels.get('chat:1'))
}

const LENGTHS: readonly (readonly [times: readonly number[], nowMs: number, length: number, title: string])[] = [
  [[0], 0, 1, 'one publication'],
  [[0, 0, 0], 0, 2, 'more than history_size'],
  [[0, 0], 9_999, 2, 'just before the end of history_ttl'],
  [[0, 0], 10_000, 0, 'at the end of history_ttl'],
  [[0, 5_000], 14_999, 2, 'a later publication extends the lifetime']
]
for (const [times, nowMs, length, title] of LENGTHS) {
  t.test(`${length} publications are in the history: ${title}`, async (t) => {
    t.equal(activityAfter(times).stored(nowMs), length)
  })
}

t.test('publications with skip_history are not in the history', async (t) => {
  const { relay, publish } = coreRelay(withNamespace({ history_size: 2, history_ttl: '10s' }))
  publish('chat:1', 1, { skipHistory: true })

  t.equal(relay.activity.channels.get('chat:1')?.stored(relay.clocks.monotonicMs()), 0)
})

t.test('a channel whose history was removed has nothing in it', async (t) => {
  const { relay, publish } = coreRelay(withNamespace({ history_size: 2, history_ttl: '10s' }))
  publish('chat:1', 1)
  const stored = () => relay.activity.channels.get('chat:1')?.stored(relay.clocks.monotonicMs())
  t.equal(stored(), 1)
  t.equal(await relay.removeHistory('chat:1'), null)

  t.equal(stored(), 0)
})

t.test('a JSON object may have white space before it', async (t) => {
  const { relay } = coreRelay(withNamespace({ publication_data_format: 'json_object' }))

  for (const data of ['{}', ' {}', Buffer.from('\t{}')])
    t.notMatch(relay.publish('chat:1', { ...PLAIN_PUBLICATION, data }), ReplyError)
  t.match(relay.publish('chat:1', { ...PLAIN_PUBLICATION, data: ' []' }), { code: 107 })
})

t.test('bytes that are not UTF-8 are not JSON, also inside a text', async (t) => {
  const { relay } = coreRelay(withNamespace({ publication_data_format: 'json' }))
  const publish = (data: Buffer) => relay.publish('chat:1', { ...PLAIN_PUBLICATION, data })

  t.notMatch(publish(Buffer.from('"é"')), ReplyError)
  t.match(publish(Buffer.from('"é"', 'latin1')), { code: 107 })
})

const TEN: readonly number[] = Array(10).fill(0)
const RATES: readonly (readonly [nowMs: number, perSecond: number])[] = [
  [0, 1],
  [10_000, 1],
  [13_000, 0.7],
  [20_000, 0],
  [25_000, 0]
]
for (const [nowMs, perSecond] of RATES) {
  t.test(`${nowMs} ms after ten publications the rate is ${perSecond} per second`, async (t) => {
    t.equal(activityAfter(TEN).perSecond(nowMs), perSecond)
  })
}

t.test('the last publication is the latest of all namespaces', async (t) => {
  const activity = new PublishActivity()
  activity.published('chat:1', resolve('chat:1'), 5, true)
  activity.published('plain', resolve('plain'), 3, true)

  t.equal(activity.last, 5)
  t.equal(activity.lastIn(''), 3)
})

t.test(
  'the channels with the latest publications are known, however many channels a publisher generates',
  async (t) => {
    const resolved = resolve('chat:1')
    const activity = new PublishActivity()
    for (let n = 0; n < 210_000; n++) {
      if (n % 70_000 === 0) activity.published('chat:busy', resolved, n, true)
      activity.published(`chat:${n}`, resolved, n, true)
    }

    t.equal(activity.channels.get('chat:busy')?.lastAt, 140_000)
    t.ok(activity.channels.size <= 200_000, `${activity.channels.size} channels`)
  }
)

t.test('a broadcast publishes to the other channels if one has no name', async (t) => {
  const { relay } = coreRelay(withNamespace({ history_size: 2, history_ttl: '10s' }))
  const outcomes = await relay.broadcast(['', 'chat:1'], PLAIN_PUBLICATION, new TimeSlice(relay.clocks.monotonicMs))

  t.match(outcomes, [ERROR_EMPTY_CHANNEL, { offset: 1 }])
})

t.test('a broadcast publishes to the other channels if the engine fails for one', async (t) => {
  const published: Published = { epoch: 'e', offset: 1, suppressedBy: null }
  const broker: Broker = {
    start: async () => undefined,
    subscribe: async () => undefined,
    unsubscribe: async () => undefined,
    isDelivering: () => true,
    publish: async (channel) => {
      if (channel === 'chat:1') throw new EngineError('down')
      return published
    },
    joinOrLeave: async () => undefined,
    close: async () => undefined
  }
  const { relay } = coreRelay(withNamespace({}), { broker })
  const outcomes = await relay.broadcast(
    ['chat:1', 'chat:2'],
    PLAIN_PUBLICATION,
    new TimeSlice(relay.clocks.monotonicMs)
  )

  t.match(outcomes, [ERROR_INTERNAL, published])
})

t.test('an engine that publishes to many channels receives each form of the data of a broadcast once', async (t) => {
  const { engine } = coreRelay()
  const calls: [channels: readonly string[], data: NewPublication['data'], delta: boolean][] = []
  const broker = Object.assign(Object.create(engine), {
    start: async () => undefined,
    publishToMany: async (targets: readonly { readonly channel: string }[], { data, delta }: NewPublication) => {
      calls.push([targets.map(({ channel }) => channel), data, delta])
      return targets.map(({ channel }, index) =>
        channel === 'plain:2' ? new EngineError('down') : { epoch: 'e', offset: index + 1, suppressedBy: null }
      )
    }
  })
  const namespaces = [
    { name: 'plain' },
    { name: 'deltas', delta_publish: true },
    { name: 'bytes', publication_data_format: 'binary' },
    { name: 'map', subscription_type: 'map', map: { mode: 'ephemeral', key_ttl: '60s' } }
  ]
  const { relay } = coreRelay({ channel: { namespaces } }, { broker })
  const broadcast = (delta: boolean) =>
    relay.broadcast(
      ['plain:1', 'bytes:1', 'unknown:1', 'deltas:1', 'plain:2', 'plain:3', 'bytes:2', 'map:1'],
      { ...PLAIN_PUBLICATION, data: '{}', delta },
      new TimeSlice(relay.clocks.monotonicMs)
    )

  t.match(await broadcast(false), [
    { offset: 1 },
    { offset: 1 },
    { code: 102 },
    { offset: 1 },
    ERROR_INTERNAL,
    { offset: 3 },
    { offset: 2 },
    ERROR_IS_MAP
  ])
  t.same(calls.splice(0), [
    [['plain:1', 'plain:2', 'plain:3'], '{}', false],
    [['deltas:1'], '{}', true],
    [['bytes:1', 'bytes:2'], Buffer.from('{}'), false]
  ])
  t.same([...relay.activity.channels.keys()].sort(), ['bytes:1', 'bytes:2', 'deltas:1', 'plain:1', 'plain:3'])
  await broadcast(true)
  t.same(
    calls.map(([channels, , delta]) => [channels, delta]),
    [
      [['plain:1', 'deltas:1', 'plain:2', 'plain:3'], true],
      [['bytes:1', 'bytes:2'], true]
    ],
    'a broadcast with deltas'
  )
})
