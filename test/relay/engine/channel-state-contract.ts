import t, { type Test } from 'tap'
import type { Broker, ChannelStateEvent, ChannelStates, Presence } from '../../../src/relay/core/engine.js'
import { STATE_RULES } from '../../helper/channel-state-rules.js'
import { eventually } from '../../helper/eventually.js'
import { Delivered } from './contract.js'

export interface StatesUnderTest {
  readonly broker: Broker
  readonly presence: Presence
  readonly channelStates: ChannelStates
  /** Advances a clock that the test controls. Redis has its own. */
  elapse(ms: number): Promise<void> | void
}

const LONG_MS = 60_000
const STEP_MS = STATE_RULES.vacatedDelayMs / 5

/** Functions that make the tests of an engine short. */
export const stateActions = ({ presence, channelStates, elapse }: Omit<StatesUnderTest, 'broker'>) => {
  const take = async (limit = 100, leaseMs = LONG_MS, proxy = 'default'): Promise<readonly ChannelStateEvent[]> =>
    (await channelStates.take(proxy, limit, leaseMs)).events
  return {
    join: (channel: string, client = 'c1') => presence.add(channel, client, 'ada', '{}'),
    leave: (channel: string, client = 'c1') => presence.remove(channel, client),
    take,
    /** The next events. */
    next: (limit = 100, leaseMs = LONG_MS, proxy = 'default') =>
      eventually(async () => {
        const events = await take(limit, leaseMs, proxy)
        if (events.length > 0) return events
        await elapse(STEP_MS)
        return null
      }),
    confirm: (events: readonly ChannelStateEvent[]) => channelStates.confirm('default', events),
    release: (events: readonly ChannelStateEvent[]) => channelStates.release('default', events)
  }
}

export const named = (events: readonly ChannelStateEvent[]): string[] =>
  events.map(({ channel, type }) => `${channel} ${type}`).sort()

/** The tests of channel states that every engine passes. */
export const channelStateContract = (name: string, create: (t: Test) => Promise<StatesUnderTest>): void => {
  t.test(`channel states of ${name}`, async (t) => {
    const setUp = async (t: Test) => {
      const engine = await create(t)
      await engine.broker.start(new Delivered())
      engine.channelStates.configure(STATE_RULES)
      return { ...engine, ...stateActions(engine) }
    }

    t.test('the first subscriber occupies a channel, and it is vacated after the last one', async (t) => {
      const { join, leave, next, confirm, take } = await setUp(t)
      await join('room:1', 'c1')
      await join('room:1', 'c2')
      const [occupied] = await next()
      t.match(occupied, { channel: 'room:1', type: 'occupied', id: /^.{8,}$/ })
      await confirm([occupied].flatMap((event) => event ?? []))
      await leave('room:1', 'c1')
      t.same(await take(), [])
      await leave('room:1', 'c2')
      const [vacated] = await next()
      t.match(vacated, { channel: 'room:1', type: 'vacated' })
      t.not(vacated?.id, occupied?.id)
      t.ok(Number(vacated?.timeMs) >= Number(occupied?.timeMs) + STATE_RULES.vacatedDelayMs)
    })

    t.test('the events that are due and not taken are counted', async (t) => {
      const { channelStates, join, next, confirm, release } = await setUp(t)
      const count = (expected: number) =>
        eventually(async () => (await channelStates.countDue('default')) === expected || null)
      await count(0)
      for (const channel of ['room:1', 'room:2', 'room:3']) await join(channel)
      await count(3)
      const taken: ChannelStateEvent[] = []
      while (taken.length < 3) taken.push(...(await next(3 - taken.length)))
      await count(0)
      await release(taken.slice(0, 2))
      await count(2)
      await confirm(await next(2))
      await count(0)
      t.equal(await channelStates.countDue('another'), 0)
    })

    t.test('a subscriber that returns within the delay causes no event', async (t) => {
      const { join, leave, next, confirm } = await setUp(t)
      await join('room:reloaded')
      await join('room:left')
      const occupied = await collected(next, 2)
      await confirm(occupied)
      await leave('room:reloaded')
      await leave('room:left')
      await join('room:reloaded', 'c2')

      t.same(named(await next()), ['room:left vacated'])
    })

    t.test('channels without a proxy have no events', async (t) => {
      const { join, next } = await setUp(t)
      await join('other:1')
      await join('room:1')

      t.same(named(await next()), ['room:1 occupied'])
    })

    t.test('a subscriber that leaves before the event was taken causes no event', async (t) => {
      const { join, leave, next } = await setUp(t)
      await join('room:short')
      await leave('room:short')
      await join('room:1')

      t.same(named(await next()), ['room:1 occupied'])
    })

    t.test('an event is taken by one caller until it is released or its lease ends', async (t) => {
      const { join, next, take, release } = await setUp(t)
      await join('room:1')
      const first = await next()
      t.same(await take(), [], 'the event is leased')
      await release(first)
      const [again] = await next(100, STEP_MS)
      t.same(again, first[0], 'the same event after a release')
      t.same(await next(), [again], 'and after the end of its lease')
    })

    t.test('vacated follows once occupied has been confirmed, even if the subscriber left long ago', async (t) => {
      const { join, leave, next, take, confirm, elapse } = await setUp(t)
      await join('room:1')
      const occupied = await next()
      await leave('room:1')
      await join('room:other')
      await elapse(STATE_RULES.vacatedDelayMs * 2)
      t.same(named(await next()), ['room:other occupied'])
      t.same(await take(), [])
      await confirm(occupied)

      t.same(named(await next()), ['room:1 vacated'])
    })

    t.test('occupied follows once vacated has been confirmed', async (t) => {
      const { join, leave, next, confirm, take } = await setUp(t)
      await join('room:1')
      await confirm(await next())
      await leave('room:1')
      const vacated = await next()
      await join('room:1')
      t.same(await take(), [])
      await confirm(vacated)

      t.same(named(await next()), ['room:1 occupied'])
    })

    t.test('a visit while vacated is unconfirmed causes no event', async (t) => {
      const { join, leave, next, confirm, take } = await setUp(t)
      await join('room:1')
      await confirm(await next())
      await leave('room:1')
      const vacated = await next()
      await join('room:1')
      await leave('room:1')
      await confirm(vacated)
      await join('room:2')

      t.same(named(await next()), ['room:2 occupied'])
      t.same(await take(), [])
    })

    t.test('a late confirmation of an earlier event changes nothing', async (t) => {
      const { join, leave, next, confirm } = await setUp(t)
      await join('room:1')
      const occupied = await next()
      await confirm(occupied)
      await leave('room:1')
      const vacated = await next()
      await confirm(occupied)
      await join('room:1')
      await join('room:2')
      t.same(named(await next()), ['room:2 occupied'])
      await confirm(vacated)

      t.same(named(await next()), ['room:1 occupied'])
    })

    t.test('no more events are taken than requested', async (t) => {
      const { join, channelStates, next } = await setUp(t)
      const channels = ['room:1', 'room:2', 'room:3', 'room:é"\n', 'room:{5}']
      for (const channel of channels) await join(channel)
      const events = [...(await next(2))]
      t.ok(events.length <= 2)
      while (events.length < channels.length) events.push(...(await next(2)))

      t.same(named(events), channels.map((channel) => `${channel} occupied`).sort())
      t.equal((await channelStates.take('default', 2, LONG_MS)).events.length, 0)
    })

    t.test('a listener is called when an event becomes due', async (t) => {
      const { join, channelStates, take } = await setUp(t)
      // A worker is notified after its first request.
      await take()
      const due = new Promise((resolve) => channelStates.onDue(resolve))
      await join('room:1')

      t.equal(await due, 'default')
    })
  })
}

/** Events of several takes. */
export const collected = async (
  next: () => Promise<readonly ChannelStateEvent[]>,
  count: number
): Promise<readonly ChannelStateEvent[]> => {
  const events: ChannelStateEvent[] = []
  while (events.length < count) events.push(...(await next()))
  return events
}
