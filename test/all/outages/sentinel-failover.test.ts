import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { startSentinels, type TestSentinels } from '../../helper/redis-sentinel.js'
import { type EdgeRelay, officialClient, startRelay } from '../../helper/relay.js'
import { required } from '../../helper/required.js'
import {
  type AcknowledgedPublication,
  checkSequences,
  type Position,
  SequenceSubscriber
} from '../../helper/sequence-check.js'
import { mapPublisher, ShownMap, writeMany } from '../../helper/shown-map.js'

const CLIENTS = 40
const CHANNELS = 5
const PUBLISHERS = 3

const CONFIG = {
  client: { recovery_max_publication_limit: 5_000 },
  channel: {
    namespaces: [
      {
        name: 'seq',
        allow_subscribe_for_client: true,
        history_size: 5_000,
        history_ttl: '600s',
        force_recovery: true
      },
      { name: 'map', subscription_type: 'map', allow_subscribe_for_client: true, map: { mode: 'persistent' } }
    ]
  }
}

const connectSubscriber = (t: Test, relays: readonly EdgeRelay[], index: number): SequenceSubscriber => {
  const subscriber = new SequenceSubscriber(`seq:${index % CHANNELS}`)
  const { port } = required(relays[Math.floor(index / CHANNELS) % relays.length])
  const client = officialClient(t, { port }, 'websocket', { timeout: 30_000 })
  const delays = { minResubscribeDelay: 50, maxResubscribeDelay: 500 }
  const subscription = client.newSubscription(subscriber.channel, delays)
  subscription.on('subscribed', (context) => subscriber.subscribed(context))
  subscription.on('publication', (context) => subscriber.publication(context))
  subscription.subscribe()
  client.connect()
  return subscriber
}

/** Publishers that repeat a publication until a relay has confirmed it. */
const startPublishers = (relays: readonly EdgeRelay[]) => {
  const acknowledged: AcknowledgedPublication[] = []
  const codes = new Set<number>()
  let next = 0
  let isStopped = false
  const publish = async (n: number): Promise<void> => {
    const channel = `seq:${n % CHANNELS}`
    for (let attempt = 0; ; attempt++) {
      const relay = required(relays[(n + attempt) % relays.length])
      const { body } = await relay.api('publish', { channel, data: { n }, idempotency_key: String(n) })
      const { result, error } = JSON.parse(body)
      if (error === undefined) {
        acknowledged.push({ channel, n, ...result })
        return
      }
      codes.add(error.code)
      await setTimeout(50)
    }
  }
  const done = Promise.all(
    Array.from({ length: PUBLISHERS }, async () => {
      while (!isStopped) {
        await publish(next++)
        await setTimeout(10)
      }
    })
  )
  return {
    acknowledged,
    codes,
    /** Resolves when as many further publications have been confirmed. */
    more: async (count: number): Promise<void> => {
      const until = acknowledged.length + count
      await eventually(() => acknowledged.length >= until, { label: `${count} more publications` })
    },
    stop: async (): Promise<void> => {
      isStopped = true
      await done
    }
  }
}

/** A map that a client of each relay follows. */
const followMap = async (t: Test, relays: readonly EdgeRelay[], channel: string) => {
  const { write, remove, entries } = mapPublisher(required(relays[0]), channel)
  await writeMany(required(relays[1]), channel, 40)
  const clients = relays.map((relay) => {
    const client = officialClient(t, relay, 'websocket', { timeout: 30_000 })
    const subscription = client.newMapSubscription(channel, { minResubscribeDelay: 50, maxResubscribeDelay: 500 })
    const shown = new ShownMap(subscription, (data) => data)
    subscription.subscribe()
    client.connect()
    return shown
  })
  const confirmed = (change: () => Promise<object>): Promise<unknown> =>
    eventually(async () => !('error' in (await change())))
  return {
    write: (key: string) => confirmed(() => write(key, 'changed')),
    remove: (key: string) => confirmed(() => remove(key)),
    /** The entries, when all clients have them. */
    agreed: async () => {
      await eventually(async () => {
        const stored = JSON.stringify(await entries())
        return clients.every(({ state }) => JSON.stringify(state) === stored)
      })
      return entries()
    }
  }
}

/** Waits until the replica has what the master has now. */
const replicated = async ({ redis: [master, replica] }: TestSentinels): Promise<void> => {
  const offset = async (redis: typeof master): Promise<number> =>
    Number(/master_repl_offset:(\d+)/.exec(await redis.info('replication'))?.[1])
  const end = await offset(master)
  await eventually(async () => (await offset(replica)) >= end)
}

t.test('relays under load follow the master that Sentinel promotes', async (t) => {
  const sentinels = await startSentinels(t)
  const { servers, redis } = sentinels
  const env = { RELAY_ENGINE: 'redis', REDIS_URL: sentinels.url }
  const relays = [await startRelay(t, CONFIG, env), await startRelay(t, CONFIG, env)]
  const subscribers = Array.from({ length: CLIENTS }, (_, index) => connectSubscriber(t, relays, index))
  await eventually(() => subscribers.every(({ sessions }) => sessions.length > 0))
  const publishers = startPublishers(relays)
  const { acknowledged } = publishers

  /** Kills the master and reports how long no publication was confirmed. */
  const killMaster = async (index: 0 | 1, title: string): Promise<void> => {
    await servers[index].kill()
    const killedAt = performance.now()
    const confirmed = acknowledged.length
    // One publication of each publisher may have been confirmed before the master died.
    await eventually(() => acknowledged.length > confirmed + PUBLISHERS, { label: `service after ${title}` })
    t.comment(`${title}: publications were confirmed again after ${Math.round(performance.now() - killedAt)} ms`)
  }

  const map = await followMap(t, relays, 'map:1')
  await publishers.more(100)
  for (const key of ['k000', 'k001', 'k002']) await map.remove(key)
  const before = await map.agreed()
  await replicated(sentinels)
  await killMaster(0, 'a failover')
  await map.write('k003')
  await map.remove('k004')
  const { k004, ...rest } = before
  t.same(await map.agreed(), { ...rest, k003: 'changed' }, 'a map survives, and removed keys stay removed')
  t.equal(Object.keys(before).length, 37)
  await publishers.more(100)

  // The old master returns as a replica. The new one loses its replica, so that the next failover loses writes.
  await servers[0].restart()
  await eventually(async () => (await redis[0].info('replication')).includes('master_link_status:up'))
  await eventually(async () => (await sentinels.masterPort()) === servers[1].port)
  servers[0].pause()
  await redis[1].call('CLIENT', 'KILL', 'TYPE', 'replica')
  // Few, because Sentinel does not promote a replica that has been disconnected for long.
  await publishers.more(20)
  const lost = required(acknowledged.at(-1))
  const killing = killMaster(1, 'a failover that loses writes')
  servers[0].resume()
  await killing
  await map.write('k005')
  t.match(await map.agreed(), { k005: 'changed' }, 'clients of a map have what the new master has')
  await publishers.more(100)
  await publishers.stop()

  const ends = new Map<string, Position>()
  for (const { channel } of subscribers.slice(0, CHANNELS)) {
    const { body } = await required(relays[0]).api('history', { channel, limit: 0 })
    ends.set(channel, JSON.parse(body).result)
  }
  await eventually(() => subscribers.every((each) => each.isAt(ends.get(each.channel) ?? { epoch: '', offset: 0 })))

  t.same([...publishers.codes], [100], 'publications were rejected as temporarily impossible only')
  checkSequences(t, subscribers, acknowledged)
  t.ok(
    [...ends.values()].every(({ epoch }) => epoch !== lost.epoch),
    'the loss of confirmed publications begins a new epoch'
  )
  t.ok(
    subscribers.every(({ sessions }) => sessions.some(({ epoch }) => epoch !== sessions.at(-1)?.epoch)),
    'every client learns that it cannot recover what was lost'
  )
})
