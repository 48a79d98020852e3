import t from 'tap'
import type {
  BackendRow,
  ChannelDetail,
  ChannelRow,
  Check,
  ConnectionDetail,
  ConnectionRow,
  Page,
  RevocationPage
} from '../../../src/relay/admin/contract.js'
import { ADMIN_PASSWORD, operator } from '../../helper/admin.js'
import { RawAnswer, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { connectedClient, openClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'

const ON = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD }

t.test("the operators' page of two relays lists event proxies and webhooks with their errors and queues", async (t) => {
  const redis = await startRedis(t)
  const backend = await startEventBackend(t)
  const file = {
    rpc: { proxy: { endpoint: backend.endpoint('rpc') }, without_namespace: { proxy_enabled: true } },
    channel: {
      proxy: { state: { endpoint: backend.endpoint('state') } },
      namespaces: [{ name: 'room', allow_subscribe_for_client: true, presence: true, state_proxy_enabled: true }]
    }
  }
  const env = { ...ON, RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
  const relays = [await startRelay(t, file, env), await startRelay(t, file, env)] as const
  const one = await operator(relays[0])
  const backends = () => one.read<readonly BackendRow[]>('backends')
  const row = async (id: string) => (await backends()).find((each) => each.id === id)
  t.match(await row('rpc.proxy'), { events: ['rpc'], state: 'green', errorRate: null, waitingEvents: null, reason: '' })

  const clients = [await connectedClient(t, relays[0].url), await connectedClient(t, relays[1].url)] as const
  await clients[0].request({ id: 2, rpc: { method: 'x' } })
  backend.on('rpc', new RawAnswer(500))
  await clients[1].request({ id: 2, rpc: { method: 'x' } })
  const failing = await row('rpc.proxy')
  t.match(failing, { state: 'red', reason: 'status 500', inFlight: 0, queued: 0, lastFailure: Number })
  t.equal(failing?.errorRate, 0.5, 'calls of both relays')
  backend.on('rpc', {})
  await clients[1].request({ id: 3, rpc: { method: 'x' } })
  t.match(await row('rpc.proxy'), { state: 'amber' })

  backend.on('state', new RawAnswer(503))
  for (const [index, client] of clients.entries())
    await client.request({ id: 4, subscribe: { channel: `room:${index}` } })
  const webhooks = await eventually(async () => {
    const status = await row('channel.proxy.state')
    return status?.waitingEvents === 2 ? status : null
  })
  t.match(webhooks, { events: ['state'], state: 'red', errorRate: 1, reason: 'status 503' })
})

t.test('the limits check lists who was rejected by which limit, and how often', async (t) => {
  const chat = {
    name: 'chat',
    allow_subscribe_for_client: true,
    allow_publish_for_client: true,
    command_limits: [{ commands: ['publish'], by: 'user', rate: 2, interval: '60s' }]
  }
  const relay = await startRelay(
    t,
    { client: { user_connection_limit: 1, channel_limit: 1 }, channel: { namespaces: [chat] } },
    ON
  )
  const live = await (await operator(relay)).live(t)
  const client = await connectedClient(t, relay.url, 'ada')
  for (let id = 2; id < 7; id++) await client.request({ id, publish: { channel: 'chat:1', data: {} } })
  await client.request({ id: 7, subscribe: { channel: 'chat:1' } })
  await client.request({ id: 8, subscribe: { channel: 'chat:2' } })
  const second = await openClient(t, relay.url)
  second.send({ id: 1, connect: { token: relayToken({ sub: 'ada' }) } })
  await second.closed
  const checks = await live.next('checks', (all) =>
    all.some(({ id, details }) => id === 'limits' && details.length === 3)
  )
  const check: Check | undefined = checks.find(({ id }) => id === 'limits')
  t.match(check, { state: 'amber', sentence: /^Limits rejected clients 5 times:/ })
  t.same(check?.details, [
    { label: 'user ada: chat: publish, 2 per 60 s for each user', count: 3 },
    { label: 'user ada: 1 channels of a connection', count: 1 },
    { label: 'user ada: 1 connections of a user', count: 1 }
  ])
})

t.test('revoked tokens are listed until they expire, and can be searched', async (t) => {
  const relay = await startRelay(t, { client: { user_tokens_invalidate: { enabled: true, ttl: '600s' } } }, ON)
  const one = await operator(relay)
  t.same(await one.read<RevocationPage>('revocations'), { total: 0, rows: [] })
  await relay.api('invalidate_user_tokens', { user: 'ada' })
  await relay.api('invalidate_user_tokens', { user: 'bo', channel: 'floor:1' })
  const page = await one.read<RevocationPage>('revocations')
  t.equal(page.total, 2)
  t.match(await one.read<RevocationPage>('revocations?search=BO'), {
    total: 1,
    rows: [{ user: 'bo', channel: 'floor:1', issuedBefore: Number, expiresAt: Number }]
  })
  t.equal((await one.get(`revocations?search=${'x'.repeat(300)}`)).status, 400)
  relay.advance(601_000)
  t.match(await one.read<RevocationPage>('revocations'), { total: 0 })
})

t.test('the channel list selects maps with their keys, and channels with views', async (t) => {
  const plan = { conflate: 'data[].id', snapshot: true, view_x: 'x', view_y: 'y', view_cell: 10 }
  const namespaces = [
    { name: 'fleet', subscription_type: 'map', map: { mode: 'recoverable', key_ttl: '60s' } },
    { name: 'plan', allow_subscribe_for_client: true, history_size: 10, history_ttl: '300s', ...plan }
  ]
  const relay = await startRelay(t, { channel: { namespaces } }, ON)
  const one = await operator(relay)
  for (const key of ['a', 'b', 'c']) await relay.api('map_publish', { channel: 'fleet:1', key, data: {} })
  const client = await connectedClient(t, relay.url, 'ada')
  await client.request({ id: 2, subscribe: { channel: 'plan:1', data: { view: { x: 0, y: 0, w: 15, h: 5 } } } })
  const list = (query: string) => one.read<Page<ChannelRow>>(`channels?${query}`)
  t.match(await list('kind=map'), { total: 1, rows: [{ name: 'fleet:1', keys: 3, views: null }] })
  const views = { subscribers: 1, different: 1, unlimited: 0 }
  t.match(await list('kind=view'), { total: 1, rows: [{ name: 'plan:1', keys: null, views }] })
  t.equal((await list('')).total, 2)
  t.equal((await one.get('channels?kind=other')).status, 400)
  t.match(await one.read<ChannelDetail>('channel?name=plan:1'), { views })

  const connections = await one.read<Page<ConnectionRow>>('connections?user=ada')
  t.equal(connections.total, 1)
  t.equal((await one.read<Page<ConnectionRow>>('connections?user=ad')).total, 0, 'the complete name')
  const detail = await one.read<ConnectionDetail>(`connection?client=${connections.rows[0]?.client}`)
  t.match(detail.subscriptions.rows, [{ channel: 'plan:1', view: '{"x":0,"y":0,"w":20,"h":10}' }])
})
