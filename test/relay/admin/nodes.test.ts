import t from 'tap'
import type {
  ChannelRow,
  ConnectionDetail,
  ConnectionRow,
  FigureSample,
  Page
} from '../../../src/relay/admin/contract.js'
import { ADMIN_PASSWORD, Operator, operator } from '../../helper/admin.js'
import { eventually } from '../../helper/eventually.js'
import { connectedClient } from '../../helper/raw-client.js'
import { redisUrl } from '../../helper/redis.js'
import { startRelay } from '../../helper/relay.js'
import { freeze, startWorkers } from '../../helper/relay-workers.js'

const ON = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD, TRUST_PROXY: 'loopback' }
const BATCH = { type: 'position-batch', data: [] }
const sum = ({ nodes }: FigureSample, name: 'connections' | 'subscriptions'): number =>
  nodes.reduce((total, node) => total + node[name], 0)

t.test('two relays on one Redis', async (t) => {
  const env = { ...ON, RELAY_ENGINE: 'redis', REDIS_URL: await redisUrl(t), RELAY_REDIS_PREFIX: `admin-${process.pid}` }
  const [one, other] = [await startRelay(t, undefined, env), await startRelay(t, undefined, env)]
  const here = await operator(one)
  /** The same session at the other node. */
  const there = new Operator(other)
  there.cookie = here.cookie
  there.csrf = here.csrf
  await eventually(() => one.relay.cluster.size === 2 && other.relay.cluster.size === 2)

  t.test('each of two relays shows the figures of both', async (t) => {
    const client = await connectedClient(t, other.url, 'ada')
    await client.request({ id: 2, subscribe: { channel: 'floor:1' } })
    await one.publish('floor:1', BATCH)
    t.match(await client.next(), { push: { channel: 'floor:1' } })
    for (const each of [here, there]) {
      const { rows } = await each.read<Page<ChannelRow>>('channels?search=floor:1')
      t.match(rows, [{ name: 'floor:1', subscribers: 1, historyLength: 1 }])
      t.ok((rows[0]?.lastPublish ?? 0) > 0)
      const connections = await each.read<Page<ConnectionRow>>('connections')
      t.match(connections, { total: 1, rows: [{ user: 'ada', node: /^relay at / }] })
      t.match(await each.read<Page<ConnectionRow>>('connections?channel=floor:1'), { total: 1 })
      const detail = await each.read<ConnectionDetail>(`connection?client=${connections.rows[0]?.client}`)
      t.match(detail, { user: 'ada', subscriptions: { rows: [{ channel: 'floor:1' }] } })
      t.match(await each.read('publication?channel=floor:1&offset=1'), { data: JSON.stringify(BATCH), offset: 1 })
      t.equal((await each.get('publication?channel=floor:1&offset=9')).status, 404)
      t.match(await each.post('publish', { channel: 'floor:1', data: BATCH }), { status: 409, body: /1 client/ })
    }
    const live = await here.live(t)
    const { nodes } = await live.next(
      'sample',
      (sample) => sample.nodes.length === 2 && sum(sample, 'connections') === 1
    )
    t.equal(new Set(nodes.map(({ name }) => name)).size, 2, 'each has a name of its own')

    for (const each of [here, there]) {
      await eventually(async () => {
        const history = await each.history(t)
        return history.some((sample) => sample.nodes.length === 2 && sum(sample, 'connections') === 1)
      })
    }

    const tapped = await here.live(t, '?channel=floor:9')
    await tapped.next('history')
    const received = tapped.next('publication')
    t.equal((await there.post('publish', { channel: 'floor:9', data: BATCH })).status, 200)
    t.match(await received, { channel: 'floor:9' })

    t.equal((await here.post('disconnect', { user: 'ada', client: '' })).status, 204)
    t.equal(await client.closed, '3503 force disconnect')
  })

  t.test('a new relay has the figures of the time before its start', async (t) => {
    const startedAt = Date.now()
    const third = await startRelay(t, undefined, env)
    const later = new Operator(third)
    later.cookie = here.cookie
    await eventually(() => third.relay.cluster.size === 3)
    await eventually(async () => {
      const history = await later.history(t)
      return history.some(({ time, nodes }) => time < startedAt && nodes.length === 2)
    })
  })

  t.test('a connection is reported as closed only if all relays respond', async (t) => {
    const status = async (): Promise<number> => (await here.get('connection?client=unknown')).status
    const third = await startWorkers(t, 1, {}, env)
    await eventually(() => one.relay.cluster.size === 3)
    const resume = freeze(t, third.program.pid)
    await eventually(async () => (await status()) === 503)
    resume()
    await eventually(async () => (await status()) === 404)
  })

  t.test('sign-in attempts are counted over all relays', async (t) => {
    const headers = { 'x-forwarded-for': '192.0.2.9' }
    for (let count = 0; count < 5; count++) await new Operator(one).signIn('a guess', { headers })
    await eventually(async () => (await new Operator(other).signIn('a guess', { headers })).status === 429)
    t.equal((await new Operator(other).signIn(ADMIN_PASSWORD, { headers })).status, 429)
  })

  t.test('addresses of earlier sign-ins are known to all relays', async (t) => {
    const headers = { 'x-forwarded-for': '192.0.2.10' }
    const otherAddress = (count: number) => ({ headers: { 'x-forwarded-for': `198.51.100.${count}` } })
    await new Operator(one).signIn(ADMIN_PASSWORD, { headers })
    for (let count = 0; count < 120; count++) await new Operator(other).signIn('a guess', otherAddress(count))
    t.equal((await new Operator(other).signIn(ADMIN_PASSWORD, otherAddress(200))).status, 429)
    t.equal((await new Operator(other).signIn(ADMIN_PASSWORD, { headers })).status, 204)
  })

  t.test('sign-out at one relay ends the session at all relays', async (t) => {
    const live = await there.live(t)
    await live.next('history')
    const ended = live.next('end')
    t.equal((await here.post('sign-out')).status, 204)
    await ended
    t.equal((await there.get('session')).status, 401)
  })
})

t.test('two workers of one relay', async (t) => {
  const LISTENERS = { allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s' }
  const relay = await startWorkers(t, 2, { channel: { namespaces: [{ name: 'floor', ...LISTENERS }] } }, ON)
  const one = await operator(relay)

  t.test('each of two workers shows the figures of both', async (t) => {
    const clients = await Promise.all(['a', 'b', 'c', 'd'].map((user) => connectedClient(t, relay.url, user)))
    for (const client of clients) await client.request({ id: 2, subscribe: { channel: 'floor:1' } })
    const live = await one.live(t)
    const { nodes } = await live.next(
      'sample',
      (sample) => sample.nodes.length === 2 && sum(sample, 'subscriptions') === 4
    )
    t.same(nodes.map(({ name }) => name).sort(), ['relay worker 1', 'relay worker 2'])
    // Every request uses a new connection: the workers take turns, or the kernel distributes them.
    for (let count = 0; count < 8; count++) {
      t.match(await one.read<Page<ConnectionRow>>('connections'), { total: 4 })
      t.match(await one.read<Page<ChannelRow>>('channels'), { total: 1, rows: [{ name: 'floor:1', subscribers: 4 }] })
    }
    await eventually(async () => {
      const history = await one.history(t)
      return history.some((sample) => sample.nodes.length === 2 && sum(sample, 'subscriptions') === 4)
    })
    const [first] = clients
    t.equal((await one.post('disconnect', { user: 'a', client: '' })).status, 204)
    t.equal(await first?.closed, '3503 force disconnect')
  })

  t.test('sign-out at one worker ends the session at all workers', async (t) => {
    const { cookie } = one
    t.equal((await one.post('sign-out')).status, 204)
    one.cookie = cookie
    const statuses = new Set<number>()
    for (let count = 0; count < 8; count++) statuses.add((await one.get('session')).status)
    t.same([...statuses], [401])
  })
})
