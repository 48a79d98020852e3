import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { CONTROL, RedisKeys } from '../../src/relay/engine/redis/keys.js'
import { nodeMessageJson } from '../../src/relay/engine/redis/node-messages.js'
import { eventually } from '../helper/eventually.js'
import { openClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { type EdgeRelay, startRelay } from '../helper/relay.js'
import { configOf, relayToken } from '../helper/relay-rules.js'
import { startWorkers } from '../helper/relay-workers.js'

const LIMIT = 3
const FILE = { client: { user_connection_limit: LIMIT } }
const PREFIX = 'test'
const REJECTED = '3504 connection limit'

/** `connected`, or why it was closed. */
const connect = async (t: Test, url: string, user = '42') => {
  const client = await openClient(t, url)
  const reply = client.request({ id: 1, connect: { token: relayToken({ sub: user }) } })
  const outcome = await Promise.race([reply.then(() => 'connected'), client.closed])
  return { client, outcome }
}

const connectMany = async (t: Test, urls: readonly string[]) => {
  const all = await Promise.all(urls.map((url) => connect(t, url)))
  return {
    connected: all.filter(({ outcome }) => outcome === 'connected').map(({ client }) => client),
    rejected: all.filter(({ outcome }) => outcome === REJECTED).length
  }
}

const onRedis = (url: string) => ({ RELAY_ENGINE: 'redis', REDIS_URL: url, RELAY_REDIS_PREFIX: PREFIX })

const twoRelays = async (t: Test, url: string): Promise<readonly [EdgeRelay, EdgeRelay]> => {
  const start = () => startRelay(t, FILE, onRedis(url))
  return [await start(), await start()]
}

t.test('user_connection_limit applies to all workers together', async (t) => {
  const { url } = await startWorkers(t, 2, FILE)
  const { connected, rejected } = await connectMany(t, Array(3 * LIMIT).fill(url))
  t.equal(connected.length, LIMIT)
  t.equal(rejected, 2 * LIMIT)
  t.equal((await connect(t, url, 'another user')).outcome, 'connected')
  connected[0]?.ws.close()
  await connected[0]?.closed

  await eventually(async () => (await connect(t, url)).outcome === 'connected')
})

t.test('connections of a crashed worker are not counted', async (t) => {
  const relay = await startWorkers(t, 2, FILE)
  // The system chooses the workers of the connections: all of them may have the same one.
  const before = await eventually(async () => {
    const attempt = await connectMany(t, Array(LIMIT).fill(relay.url))
    const nodes = await relay.nodes()
    if (attempt.connected.length === LIMIT && nodes.every(({ num_clients }) => num_clients > 0)) return attempt
    for (const { ws } of attempt.connected) ws.terminate()
    return null
  })
  const [pid] = relay.workers()
  process.kill(pid, 'SIGKILL')
  await Promise.race(before.connected.map(({ closed }) => closed))
  await relay.program.waitForLine('worker replaced')
  const left = before.connected.filter(({ ws }) => ws.readyState === ws.OPEN).length
  const { connected } = await connectMany(t, Array(2 * LIMIT).fill(relay.url))

  t.ok(left > 0 && left < LIMIT)
  t.equal(connected.length, LIMIT - left)
})

t.test('user_connection_limit applies to all relays on one Redis together', async (t) => {
  const redis = await startRedis(t)
  const [one, other] = await twoRelays(t, redis.url)
  const urls = Array.from({ length: 3 * LIMIT }, (_, n) => (n % 2 === 0 ? one : other).url)
  const { connected, rejected } = await connectMany(t, urls)
  t.equal(connected.length, LIMIT)
  t.equal(rejected, 2 * LIMIT)
  connected[0]?.ws.close()
  await connected[0]?.closed

  await eventually(async () => (await connect(t, one.url)).outcome === 'connected')
})

t.test('connections of a crashed relay are not counted', async (t) => {
  const redis = await startRedis(t)
  const one = await startRelay(t, FILE, onRedis(redis.url))
  const dying = await startWorkers(t, 1, FILE, onRedis(redis.url))
  await connectMany(t, Array(LIMIT).fill(dying.url))
  t.equal((await connect(t, one.url)).outcome, REJECTED)
  dying.program.signal('SIGKILL')
  await dying.program.exited
  const { connected } = await connectMany(t, Array(2 * LIMIT).fill(one.url))

  t.equal(connected.length, LIMIT)
})

t.test('connections of a relay that is too busy to respond are counted', async (t) => {
  const redis = await startRedis(t)
  const [one, busy] = await twoRelays(t, redis.url)
  await connectMany(t, Array(LIMIT).fill(busy.url))
  one.relay.cluster.surveyNode = async () => null

  t.equal((await connect(t, one.url)).outcome, REJECTED)
})

t.test('connections of a relay whose heartbeats were lost are counted', async (t) => {
  const redis = await startRedis(t)
  const [one, other] = await twoRelays(t, redis.url)
  await connectMany(t, Array(LIMIT).fill(other.url))
  const raw = new Redis(redis.url)
  t.teardown(() => raw.disconnect())
  // Ends the lease at the first relay, but not in Redis.
  const left = nodeMessageJson({ kind: 'leave', node: other.relay.node })
  await eventually(async () => {
    await raw.publish(new RedisKeys(PREFIX).control(CONTROL.allNodesTopic), left)
    return one.relay.cluster.size === 1
  })

  t.equal((await connect(t, one.url)).outcome, REJECTED)
})

t.test('each relay counts its own connections while Redis is down, and all of them afterwards', async (t) => {
  const redis = await startRedis(t)
  const [one, other] = await twoRelays(t, redis.url)
  await connectMany(t, [one.url])
  await redis.kill()
  await eventually(async () => (await fetch(`${one.url}/health`)).status === 503)
  const { connected } = await connectMany(t, Array(2 * LIMIT).fill(one.url))
  t.equal(connected.length, LIMIT - 1)
  await redis.restart()
  for (const { url } of [one, other]) await eventually(async () => (await fetch(`${url}/health`)).status === 200)

  const late = () => connect(t, other.url, '42')
  for (let attempt = await late(); attempt.outcome === 'connected'; attempt = await late()) {
    attempt.client.ws.terminate()
    await setTimeout(50)
  }
})

t.test('a connection that closes while Redis is down is not counted afterwards', async (t) => {
  const redis = await startRedis(t)
  const { url } = await startRelay(t, FILE, onRedis(redis.url))
  const { connected } = await connectMany(t, Array(LIMIT).fill(url))
  await redis.shutdown()
  await eventually(async () => (await fetch(`${url}/health`)).status === 503)
  connected[0]?.ws.close()
  await connected[0]?.closed
  await redis.restart()
  await eventually(async () => (await fetch(`${url}/health`)).status === 200)

  t.equal((await connect(t, url)).outcome, 'connected')
  t.equal((await connect(t, url)).outcome, REJECTED)
})

t.test('a limit that is set by a reload counts existing connections', async (t) => {
  const edge = await startRelay(t, {})
  await connectMany(t, Array(LIMIT).fill(edge.url))
  edge.running.configure(configOf({ client: { user_connection_limit: LIMIT } }))

  t.equal((await connect(t, edge.url)).outcome, REJECTED)
})
