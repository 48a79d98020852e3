import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { startRedis } from '../helper/redis.js'
import { connectClient, type EdgeRelay, officialClient, startRelay, subscribeTo } from '../helper/relay.js'
import { mapPublisher, ShownMap } from '../helper/shown-map.js'

const OPEN = { subscription_type: 'map', allow_subscribe_for_client: true }
const FILE = {
  channel: {
    namespaces: [
      { name: 'recoverable', ...OPEN, map: { mode: 'recoverable', key_ttl: '1h' } },
      { name: 'ephemeral', ...OPEN, map: { mode: 'ephemeral', key_ttl: '1h' } },
      { name: 'persistent', ...OPEN, map: { mode: 'persistent' } },
      { name: 'chat', allow_subscribe_for_client: true, history_size: 10, history_ttl: '1h', force_positioning: true }
    ]
  }
}
const MAPS = ['recoverable:1', 'ephemeral:1', 'persistent:1']

/** The epochs of a stream and of maps that clients of the relay follow. */
const epochs = async ({ api }: EdgeRelay) => {
  const epochOf = async (method: string, channel: string) =>
    JSON.parse((await api(method, { channel })).body).result.epoch
  return {
    chat: await epochOf('history', 'chat:1'),
    recoverable: await epochOf('map_read_state', 'recoverable:1'),
    persistent: await epochOf('map_read_state', 'persistent:1')
  }
}

/** Whether the relay reaches Redis. */
const isReady = async ({ api }: EdgeRelay): Promise<boolean> =>
  !('error' in JSON.parse((await api('map_stats', { channel: 'persistent:1' })).body))

const followAll = async (t: Test, relay: EdgeRelay) => {
  const client = await connectClient(officialClient(t, relay, 'websocket'))
  await subscribeTo(client, 'chat:1')
  const shown = new Map<string, ShownMap>()
  for (const channel of MAPS) {
    const subscription = client.newMapSubscription(channel, { minResubscribeDelay: 1, maxResubscribeDelay: 20 })
    shown.set(channel, new ShownMap(subscription, (data) => data))
    subscription.subscribe()
  }
  return shown
}

t.test('maps that clients follow are not taken for lost data when Redis restarts with everything', async (t) => {
  const redis = await startRedis(t, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  const start = () => startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: redis.url })
  const [one, other] = [await start(), await start()]
  await other.publish('chat:1', 1)
  for (const channel of MAPS) for (const key of ['a', 'b']) await mapPublisher(other, channel).write(key, 1)
  const shown = await followAll(t, one)
  await eventually(() => [...shown.values()].every(({ state }) => Object.keys(state).length === 2))
  // Changes that were delivered live, a removal among them.
  for (const channel of MAPS) {
    await mapPublisher(other, channel).write('c', 1)
    await mapPublisher(other, channel).remove('a')
  }
  await eventually(() => [...shown.values()].every(({ state }) => Object.keys(state).join() === 'b,c'))
  const before = await epochs(one)
  await redis.kill()
  await eventually(async () => !(await isReady(one)) && !(await isReady(other)))
  await redis.restart()
  await eventually(async () => (await isReady(one)) && (await isReady(other)))

  t.same(await epochs(one), before)
  for (const channel of MAPS) {
    await eventually(async () => !('error' in (await mapPublisher(other, channel).write('d', 1))))
    await eventually(() => Object.keys(shown.get(channel)?.state ?? {}).join() === 'b,c,d')
    t.pass(`${channel} continues`)
  }
})

t.test('a map that was cleared is not taken for lost data when Redis restarts with everything', async (t) => {
  const redis = await startRedis(t, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  const relay = await startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: redis.url })
  await relay.publish('chat:1', 1)
  const map = mapPublisher(relay, 'persistent:1')
  await map.write('a', 1)
  const shown = await followAll(t, relay)
  await eventually(() => shown.get('persistent:1')?.syncs.length === 1)
  await map.clear()
  const before = await epochs(relay)
  await redis.kill()
  await eventually(async () => !(await isReady(relay)))
  await redis.restart()
  await eventually(() => isReady(relay))
  t.equal((await epochs(relay)).chat, before.chat)
})
