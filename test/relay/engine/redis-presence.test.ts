import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { chunks } from '../../../src/relay/engine/redis/batching.js'
import { STATE_RULES } from '../../helper/channel-state-rules.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis } from '../../helper/redis.js'
import { Delivered } from './contract.js'
import { redisEngine } from './redis-fixture.js'

const CHANNELS = 2_000
const LARGE_CHANNEL_CLIENTS = 1_200
const LEASE_MS = 8_000
const INTERVAL_MS = (LEASE_MS * 27) / 60
/** Longer than a step. All scripts of one turn of the event loop are in one window, except on a very slow machine. */
const WINDOW_MS = 200

const server = await startRedis(t)
const redis = new Redis(server.url)
t.teardown(() => redis.disconnect())

interface ScriptCall {
  readonly at: number
  readonly channel: string
}

/** The calls of scripts with a presence key, with the time at which Redis received them. */
let calls: ScriptCall[] = []
let since = 0
const monitor = await redis.monitor()
t.teardown(() => monitor.disconnect())
monitor.on('monitor', (time: string, [command = '', , , key = '']: readonly string[]) => {
  const [, channel] = /\{:(.*)\}presence$/.exec(key) ?? []
  const at = Number(time) * 1000
  if (command === 'evalsha' && channel !== undefined && at >= since) calls.push({ at, channel })
})

/** Forgets the calls up to now. */
const forgetCalls = async (): Promise<void> => {
  const [seconds, microseconds] = await redis.time()
  since = Number(seconds) * 1000 + Number(microseconds) / 1000
  calls = []
}

/** The largest number of scripts in a window. */
const mostAtOnce = (): number =>
  calls.reduce((most, { at }) => {
    const inWindow = calls.filter((each) => each.at >= at && each.at < at + WINDOW_MS)
    return Math.max(most, inWindow.length)
  }, 0)

t.test('a node with presence on many channels', async (t) => {
  const { broker, presence, channelStates, engine, prefix } = redisEngine(t, server.url, { presenceTtlMs: LEASE_MS })
  await broker.start(new Delivered())
  const channels = Array.from({ length: CHANNELS }, (_, n) => `room:${n}`)
  await Promise.all(channels.map((channel) => presence.add(channel, 'c', 'u', '{}')))

  const renewedAll = async (): Promise<void> => {
    await eventually(() => new Set(calls.map(({ channel }) => channel)).size === CHANNELS)
  }

  t.test('renews them over the interval, not in one turn', async (t) => {
    await forgetCalls()
    await setTimeout(INTERVAL_MS / 2)
    const atHalf = calls.length
    await renewedAll()

    t.ok(atHalf > 0 && atHalf < CHANNELS, `${atHalf} scripts in half an interval`)
    t.ok(mostAtOnce() < CHANNELS / 2, `${mostAtOnce()} scripts at once`)
  })

  t.test('restores them after an outage, not in one turn', async (t) => {
    await redis.flushall()
    for (const [, id = ''] of String(await redis.client('LIST')).matchAll(
      /^id=(\d+) .* name=gatehouse-relay-commands /gm
    ))
      await redis.client('KILL', 'ID', id)
    await eventually(() => !engine.isReady)
    await eventually(() => engine.isReady)
    await forgetCalls()
    await renewedAll()

    t.ok(mostAtOnce() < CHANNELS / 2, `${mostAtOnce()} scripts at once`)
    t.equal((await redis.keys(`${prefix}*}presence`)).length, CHANNELS)
  })

  t.test('renews them after a reload that adds webhooks, not in one turn', async (t) => {
    await forgetCalls()
    channelStates.configure(STATE_RULES)
    await renewedAll()

    t.ok(mostAtOnce() < CHANNELS / 2, `${mostAtOnce()} scripts at once`)
  })
})

t.test('a channel with many clients', async (t) => {
  const lease = 2_000
  const { broker, presence } = redisEngine(t, server.url, { presenceTtlMs: lease })
  await broker.start(new Delivered())
  const clients = Array.from({ length: LARGE_CHANNEL_CLIENTS }, (_, n) => `client-${n}`)
  await Promise.all(clients.map((client) => presence.add('room', client, 'u', '{}')))

  t.test('keeps all of them for longer than a lease', async (t) => {
    await setTimeout(2 * lease)
    t.equal((await presence.count('room')).clients, LARGE_CHANNEL_CLIENTS)
  })

  t.test('does not bring back clients that leave during a renewal', async (t) => {
    for (const part of chunks(clients.slice(10), 50)) {
      await Promise.all(part.map((client) => presence.remove('room', client)))
      await setTimeout(20)
    }
    t.equal((await presence.count('room')).clients, 10)
  })
})
