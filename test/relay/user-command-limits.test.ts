import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { connectedClient, openClient, type RawClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'
import { startWorkers } from '../helper/relay-workers.js'

const RATE = 5
const TOO_MANY = 111
const PREFIX = 'test'
const USER = 'a}{da'

const limitsOf = (command: string) => [{ commands: [command], by: 'user', rate: RATE, interval: '1h' }]
const FILE = {
  channel: {
    namespaces: [
      {
        name: 'chat',
        allow_subscribe_for_client: true,
        allow_publish_for_client: true,
        command_limits: limitsOf('publish')
      }
    ]
  }
}

const onRedis = (url: string) => ({ RELAY_ENGINE: 'redis', REDIS_URL: url, RELAY_REDIS_PREFIX: PREFIX })

const relayOn = (t: Test, url: string) => startRelay(t, FILE, onRedis(url))

/** The code of the error reply; 0 for none. */
const publish = async (client: RawClient): Promise<number> =>
  (await client.request({ id: 2, publish: { channel: 'chat:a', data: {} } })).error?.code ?? 0

/** Each client publishes `RATE` times, all at once. Returns the number of publications that were accepted. */
const acceptedOf = async (t: Test, clients: readonly RawClient[]): Promise<number> => {
  const codes = await Promise.all(clients.flatMap((client) => Array.from({ length: RATE }, () => publish(client))))
  const accepted = codes.filter((code) => code === 0).length
  t.equal(codes.filter((code) => code === TOO_MANY).length, codes.length - accepted)
  return accepted
}

const localCount = async (url: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^relay_user_limits_local_total (\d+)$/m.exec(text)?.[1])
}

const hasHealth = (url: string, status: number): Promise<unknown> =>
  eventually(async () => (await fetch(`${url}/health`)).status === status)

t.test('command_limits by user count the connections to all workers together', async (t) => {
  const { url } = await startWorkers(t, 2, FILE)
  const clients = await Promise.all(Array.from({ length: 4 }, () => connectedClient(t, url, USER)))
  t.equal(await acceptedOf(t, clients), RATE)
  t.equal(await publish(await connectedClient(t, url, 'another user')), 0)
})

t.test('command_limits by user count the connections to all relays on one Redis together', async (t) => {
  const redis = await startRedis(t)
  const [one, other] = [await relayOn(t, redis.url), await relayOn(t, redis.url)]
  const urls = [one.url, other.url, one.url, other.url]
  const clients = await Promise.all(urls.map((url) => connectedClient(t, url, USER)))
  t.equal(await acceptedOf(t, clients), RATE)
  t.equal(await publish(await connectedClient(t, one.url, 'another user')), 0)
  t.same([await localCount(one.url), await localCount(other.url)], [0, 0])

  const raw = new Redis(redis.url)
  t.teardown(() => raw.disconnect())
  const key = `${PREFIX}@{:${USER}}rate:chat:publish:${RATE}/3600000`
  const ttl = await raw.pttl(key)
  t.ok(ttl > 0 && ttl <= 3_600_000, 'the bucket expires once it is full')
})

t.test('command_limits count the connects of a user to all relays on one Redis', async (t) => {
  const redis = await startRedis(t)
  const file = { client: { command_limits: limitsOf('connect') } }
  const start = () => startRelay(t, file, onRedis(redis.url))
  const [one, other] = [await start(), await start()]
  const connect = async (url: string): Promise<number> => {
    const client = await openClient(t, url)
    return (await client.request({ id: 1, connect: { token: relayToken({ sub: USER }) } })).error?.code ?? 0
  }
  const codes = await Promise.all(Array.from({ length: 2 * RATE }, (_, n) => connect((n % 2 === 0 ? one : other).url)))
  t.same(codes.sort(), [...Array(RATE).fill(0), ...Array(RATE).fill(TOO_MANY)])
})

t.test('each relay counts the commands of a user alone while Redis is down, and together afterwards', async (t) => {
  const redis = await startRedis(t)
  const [one, other] = [await relayOn(t, redis.url), await relayOn(t, redis.url)]
  const clients = await Promise.all([one, other].map(({ url }) => connectedClient(t, url, USER)))
  t.equal(await acceptedOf(t, clients), RATE)
  await redis.kill()
  for (const { url } of [one, other]) await hasHealth(url, 503)
  for (const client of clients) {
    const codes: number[] = []
    for (let sent = 0; sent <= RATE; sent++) codes.push(await publish(client))
    // Redis is needed to publish, not to count.
    t.same(codes, [...Array(RATE).fill(100), TOO_MANY])
  }
  t.same([await localCount(one.url), await localCount(other.url)], [RATE + 1, RATE + 1])

  await redis.restart()
  for (const { url } of [one, other]) await hasHealth(url, 200)
  // Redis is empty. A relay tries it again within a second.
  for (const { url } of [one, other]) {
    const probe = await connectedClient(t, url, 'another user')
    await eventually(async () => {
      const before = await localCount(url)
      await publish(probe)
      return (await localCount(url)) === before
    })
  }
  t.equal(await acceptedOf(t, clients), RATE)
})

t.test('a relay counts alone while Redis does not respond', async (t) => {
  const redis = await startRedis(t)
  const { url } = await relayOn(t, redis.url)
  const client = await connectedClient(t, url, USER)
  t.equal(await publish(client), 0)
  redis.pause()
  const reply = publish(client)
  await eventually(async () => (await localCount(url)) > 0)
  redis.resume()
  t.not(await reply, TOO_MANY)
})
