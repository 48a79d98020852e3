import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import type { ChannelStateRules } from '../../../src/relay/core/engine.js'
import { STATE_RULES } from '../../helper/channel-state-rules.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis } from '../../helper/redis.js'
import { collected, named, stateActions } from './channel-state-contract.js'
import { Delivered } from './contract.js'
import { type RedisEngineOptions, redisEngine } from './redis-fixture.js'

const server = await startRedis(t)
const redis = new Redis(server.url)
t.teardown(() => redis.disconnect())

/** A node whose presence ends soon after it was killed. */
const startNode = async (t: Test, options: RedisEngineOptions = {}, rules: ChannelStateRules = STATE_RULES) => {
  const under = redisEngine(t, server.url, { presenceTtlMs: 500, ...options })
  await under.broker.start(new Delivered())
  under.channelStates.configure(rules)
  const actions = stateActions({ ...under, elapse: () => undefined })
  /** The process ends without removing anything. */
  return { ...under, ...actions, kill: under.close }
}

const keysOf = async (prefix: string, part: string): Promise<string[]> =>
  (await redis.keys(`${prefix}*`)).filter((key) => key.includes(part)).sort()

t.test('nodes that share a Redis', async (t) => {
  t.test('an event is taken by one of them', async (t) => {
    const one = await startNode(t)
    const other = await startNode(t, { prefix: one.prefix })
    for (let n = 0; n < 20; n++) await one.join(`room:${n}`)
    const taken = await Promise.all([collected(() => one.next(3), 1), collected(() => other.next(3), 1)])
    const events = [...taken.flat()]
    while (events.length < 20) for (const node of [one, other]) events.push(...(await node.take(3)))

    t.equal(new Set(events.map(({ id }) => id)).size, 20)
    t.same(named(events), Array.from({ length: 20 }, (_, n) => `room:${n} occupied`).sort())
  })

  t.test('another node reports vacated after a node with the last subscriber was killed', async (t) => {
    const killed = await startNode(t)
    const survivor = await startNode(t, { prefix: killed.prefix })
    await killed.join('room:1')
    await survivor.confirm(await survivor.next())
    killed.kill()

    t.same(named(await survivor.next()), ['room:1 vacated'])
  })

  t.test('the next node to start reports vacated after all nodes were killed', async (t) => {
    const killed = await startNode(t)
    await killed.join('room:1')
    await killed.confirm(await killed.next())
    killed.kill()
    const next = await startNode(t, { prefix: killed.prefix })

    t.same(named(await next.next()), ['room:1 vacated'])
  })

  t.test('a channel is not vacated while another node has a subscriber', async (t) => {
    const killed = await startNode(t)
    const survivor = await startNode(t, { prefix: killed.prefix })
    await killed.join('room:kept', 'c1')
    await survivor.join('room:kept', 'c2')
    await killed.join('room:lost', 'c1')
    await survivor.confirm(await collected(survivor.next, 2))
    killed.kill()
    t.same(named(await survivor.next()), ['room:lost vacated'])
    await survivor.leave('room:kept', 'c2')

    t.same(named(await survivor.next()), ['room:kept vacated'])
  })

  t.test('the event of a node that was killed while it sent it is taken by another, with the same id', async (t) => {
    const killed = await startNode(t)
    const survivor = await startNode(t, { prefix: killed.prefix })
    await survivor.join('room:1')
    const [event] = await killed.next(100, 200)
    killed.kill()

    t.same(await survivor.next(), [event])
  })

  t.test('a subscriber of a node that was killed before the event was sent leaves nothing to send', async (t) => {
    const killed = await startNode(t)
    await killed.join('room:short')
    killed.kill()
    await eventually(async () => (await keysOf(killed.prefix, 'leases')).length === 0)
    const next = await startNode(t, { prefix: killed.prefix })
    await next.join('room:1')

    t.same(named(await collected(next.next, 1)), ['room:1 occupied'])
    t.same(
      await keysOf(killed.prefix, '{:room'),
      ['leases', 'presence', 'state'].map((key) => `${killed.prefix}{:room:1}${key}`)
    )
  })
})

t.test('stored states', async (t) => {
  t.test('nothing is left once vacated has been confirmed', async (t) => {
    const { prefix, join, leave, next, confirm } = await startNode(t)
    await join('room:1')
    await confirm(await next())
    t.same(await keysOf(prefix, 'state'), [
      `${prefix}!{all}states`,
      `${prefix}!{all}states:default`,
      `${prefix}{:room:1}state`
    ])
    await leave('room:1')
    await confirm(await next())
    t.same(await keysOf(prefix, 'state'), [])
    t.same(await keysOf(prefix, '{:room'), [])
  })

  t.test('subscribers that come and go while no event is taken leave nothing', async (t) => {
    const { prefix, join, leave } = await startNode(t)
    for (let n = 0; n < 50; n++) {
      await join(`room:${n}`)
      await leave(`room:${n}`)
    }
    await eventually(async () => (await keysOf(prefix, 'state')).length === 0)
    t.same(await keysOf(prefix, '{:room'), [])
  })

  t.test('a channel without a proxy stores no state', async (t) => {
    const { prefix, join, leave } = await startNode(t)
    await join('other:1')
    t.same(await keysOf(prefix, '{:other'), [`${prefix}{:other:1}leases`, `${prefix}{:other:1}presence`])
    await leave('other:1')
    t.same(await keysOf(prefix, 'state'), [])
  })

  t.test('occupied is sent again after Redis has lost its data', async (t) => {
    const { prefix, join, next, confirm } = await startNode(t)
    await join('room:1')
    await confirm(await next())
    await redis.del(...(await redis.keys(`${prefix}*`)))

    t.same(named(await next()), ['room:1 occupied'])
  })

  t.test('an index that could not be written is repaired', async (t) => {
    const { prefix, join, next } = await startNode(t)
    await join('room:1')
    await eventually(async () => redis.del(`${prefix}!{all}states:default`))

    t.same(named(await next()), ['room:1 occupied'])
  })
})

t.test('changed rules', async (t) => {
  const RENAMED: ChannelStateRules = {
    ...STATE_RULES,
    proxies: new Set(['other']),
    proxyOf: (channel) => (channel.startsWith('room:') ? 'other' : null)
  }

  t.test('a channel that had subscribers before it had a proxy is reported', async (t) => {
    const { channelStates, join, next } = await startNode(t, {}, { ...STATE_RULES, proxyOf: () => null })
    await join('room:1')
    channelStates.configure(STATE_RULES)

    t.same(named(await next()), ['room:1 occupied'])
  })

  t.test('the channels of a proxy that was renamed while no node ran get their new proxy', async (t) => {
    const killed = await startNode(t)
    await killed.join('room:1')
    await killed.confirm(await killed.next())
    killed.kill()
    const renamed = await startNode(t, { prefix: killed.prefix }, RENAMED)
    const vacated = await eventually(async () => {
      renamed.engine.sweep()
      const { events } = await renamed.channelStates.take('other', 10, 60_000)
      return events.length > 0 ? events : null
    })
    t.same(named(vacated), ['room:1 vacated'])
    await renamed.channelStates.confirm('other', vacated)
    await eventually(async () => (await keysOf(killed.prefix, 'state')).length === 0)
  })

  const WITHOUT_ROOMS: ChannelStateRules = { ...STATE_RULES, proxyOf: () => null }

  t.test('a node that does not know the namespace yet keeps the states of others', async (t) => {
    const one = await startNode(t)
    const earlier = await startNode(t, { prefix: one.prefix }, WITHOUT_ROOMS)
    await one.join('room:1')
    await one.confirm(await one.next())
    await one.leave('room:1')
    const dueNow = () => redis.zadd(`${one.prefix}!{all}states:default`, 0, 'room:1')
    await dueNow()
    t.same(await earlier.take(), [])
    await dueNow()

    t.same(named(await one.next()), ['room:1 vacated'])
  })

  t.test('an unexpected error of a sweep is logged and counted', async (t) => {
    const { prefix, channelStates, engine, record } = await startNode(t)
    channelStates.configure({
      ...STATE_RULES,
      proxyOf: () => {
        throw new TypeError('a bug')
      }
    })
    await redis.sadd(`${prefix}!{all}states`, 'removed proxy')
    await redis.zadd(`${prefix}!{all}states:removed proxy`, 0, 'room:1')
    engine.sweep()

    await eventually(() => record.unexpectedErrors === 1)
    t.match(record.lines.join('\n'), /internal error in background work .*/)
  })

  t.test('the state of a channel that has had no proxy for an hour is removed', async (t) => {
    const { prefix, channelStates, join, next, confirm } = await startNode(t)
    await join('room:1')
    await confirm(await next())
    channelStates.configure(WITHOUT_ROOMS)
    const [state, index] = [`${prefix}{:room:1}state`, `${prefix}!{all}states:default`]
    const check = async (): Promise<void> => {
      await redis.zadd(index, 0, 'room:1')
      await channelStates.take('default', 10, 60_000)
    }
    await check()
    t.equal(await redis.exists(state), 1)
    await redis.hset(state, 'f', Date.now() - 3_600_001)
    await check()

    t.same(await keysOf(prefix, 'state'), [])
  })
})
