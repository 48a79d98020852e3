import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { connectedClient, openClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { type EdgeRelay, startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'
import { startWorkers } from '../helper/relay-workers.js'
import { configWith, errorsOf } from './config-fixture.js'

const FILE = {
  client: {
    user_connection_limit: 1,
    subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'own', single_connection: true }
  },
  channel: { namespaces: [{ name: 'own', presence: true }] }
}
const CLOSED = '3504 connection limit'
const PRESENCE_STATS = { channel: 'own:#42' }

/** Connects a user at the first and then at the other address: only the later connection stays. */
const checkSingle = async (t: Test, urls: readonly [string, string], isPresent: () => Promise<boolean>) => {
  const [first, other] = urls
  const earlier = await connectedClient(t, first)
  const bystander = await connectedClient(t, first, '43')
  await eventually(isPresent)
  const later = await connectedClient(t, other)
  t.equal(await earlier.closed, CLOSED)

  t.match(await later.request({ id: 2, presence_stats: PRESENCE_STATS }), { id: 2 }, 'the later one is open')
  t.equal(bystander.ws.readyState, bystander.ws.OPEN, 'another user is not affected')
}

const isPresent =
  ({ api }: EdgeRelay) =>
  async () =>
    (await api('presence_stats', PRESENCE_STATS)).body.includes('"num_clients":1')

t.test('with single_connection a new connection closes the earlier one of its user', async (t) => {
  const relay = await startRelay(t, FILE)

  await checkSingle(t, [relay.url, relay.url], isPresent(relay))
})

t.test('with single_connection one of several connections at the same time stays', async (t) => {
  const { url, relay } = await startRelay(t, { ...FILE, client: { ...FILE.client, user_connection_limit: 0 } })
  const clients = await Promise.all(Array.from({ length: 8 }, () => connectedClient(t, url)))
  await eventually(() => relay.clients.length === 1)

  t.equal(clients.filter(({ ws }) => ws.readyState === ws.OPEN).length, 1)
})

t.test('with single_connection anonymous clients may have several connections', async (t) => {
  const { url, relay } = await startRelay(t, {
    ...FILE,
    client: { ...FILE.client, disallow_anonymous_connection_tokens: false }
  })
  await connectedClient(t, url, '')
  await connectedClient(t, url, '')

  t.equal(relay.clients.length, 2)
})

t.test('single_connection applies to all relays on one Redis together', async (t) => {
  const redis = await startRedis(t)
  const env = { RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
  const [one, other] = [await startRelay(t, FILE, env), await startRelay(t, FILE, env)]

  await checkSingle(t, [one.url, other.url], isPresent(one))
})

t.test(
  'with single_connection the connections at the same time at several relays do not all close each other',
  async (t) => {
    const redis = await startRedis(t)
    const env = { RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
    const relays = [await startRelay(t, FILE, env), await startRelay(t, FILE, env)]
    const clients = await Promise.all([...relays, ...relays].map(({ url }) => openClient(t, url)))
    for (const client of clients) client.send({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
    const open = (): number => clients.filter(({ ws }) => ws.readyState === ws.OPEN).length
    await eventually(() => open() <= 2)
    // Further commands would have arrived.
    await setTimeout(500)

    t.ok(open() >= 1, `${open()} connections`)
  }
)

t.test('single_connection applies to all workers together', async (t) => {
  const { url, api } = await startWorkers(t, 2, FILE)

  await checkSingle(t, [url, url], async () => (await api('presence_stats', PRESENCE_STATS)).num_clients === 1)
})

t.test('single_connection needs presence in the namespace of personal channels', async (t) => {
  const file = { ...FILE, channel: { namespaces: [{ name: 'own' }] } }
  const errors = errorsOf(() => configWith(file))

  t.match(errors, [/client\.subscribe_to_user_personal_channel\.single_connection requires presence/])
  const { enabled, ...off } = FILE.client.subscribe_to_user_personal_channel
  t.equal(configWith({ ...file, client: { subscribe_to_user_personal_channel: off } }).client.singleConnection, false)
})
