import type { PublicationContext } from 'centrifuge'
import t from 'tap'
import { connectedClient } from '../../helper/raw-client.js'
import {
  collect,
  connectClient,
  event,
  officialClient,
  officialProtobufClient,
  startRelay,
  subscribeTo
} from '../../helper/relay.js'
import { configOf, relayToken } from '../../helper/relay-rules.js'

const OPEN = {
  allow_subscribe_for_client: true,
  allow_publish_for_client: true,
  allow_history_for_client: true,
  allow_presence_for_client: true,
  presence: true,
  history_size: 10,
  history_ttl: '60s',
  force_recovery: true,
  allowed_delta_types: ['fossil'],
  delta_publish: true
}

const FILE = {
  channel: {
    namespaces: [
      { name: 'bytes', ...OPEN, publication_data_format: 'binary' },
      { name: 'any', ...OPEN, allow_tags_filter: true },
      { name: 'json', ...OPEN, publication_data_format: 'json' },
      { name: 'object', ...OPEN, publication_data_format: 'json_object' }
    ]
  }
}

const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
const NOT_AVAILABLE = { code: 108, message: 'not available: the channel has binary data, which needs protobuf' }

const bytesOf = (publications: readonly PublicationContext[]): Buffer[] =>
  publications.map(({ data }) => Buffer.from(data))

/** A sequence of similar bytes, which are sent as deltas. */
const similar = (n: number): Buffer => Buffer.concat([EVERY_BYTE, Buffer.from([n, 0xff, n])])

t.test('a binary namespace carries any bytes, from clients and the API, in history too', async (t) => {
  const { port, api } = await startRelay(t, FILE)
  const client = await connectClient(officialProtobufClient(t, { port }, 'websocket'))
  const plain = await subscribeTo(client, 'bytes:1')
  const received = collect(plain)
  await plain.publish(EVERY_BYTE)
  await api('publish', { channel: 'bytes:1', b64data: EVERY_BYTE.toString('base64') })
  await api('publish', { channel: 'bytes:1', data: { a: 'é' } })
  await api('broadcast', { channels: ['bytes:1', 'json:1'], b64data: Buffer.from('{\n"a":1}').toString('base64') })
  await received.until(({ length }) => length === 4)
  const expected = [EVERY_BYTE, EVERY_BYTE, Buffer.from('{"a":"é"}'), Buffer.from('{\n"a":1}')]
  t.same(bytesOf(received.publications), expected)
  t.same(bytesOf((await plain.history({ limit: 10 })).publications), expected)
  const { body } = await api('history', { channel: 'bytes:1', limit: 10 })
  t.same(
    JSON.parse(body).result.publications.map(({ b64data }: { b64data: string }) => Buffer.from(b64data, 'base64')),
    expected
  )
  t.match(JSON.parse((await api('history', { channel: 'json:1', limit: 10 })).body).result.publications, [
    { data: { a: 1 } }
  ])
})

t.test('a binary namespace sends deltas of any bytes and recovers them', async (t) => {
  const { port, api } = await startRelay(t, FILE)
  const client = await connectClient(officialProtobufClient(t, { port }, 'websocket'))
  const subscription = await subscribeTo(client, 'bytes:1', { delta: 'fossil' })
  const received = collect(subscription)
  const publish = (n: number) => api('publish', { channel: 'bytes:1', b64data: similar(n).toString('base64') })
  for (const n of [1, 2, 3]) await publish(n)
  await received.until(({ length }) => length === 3)
  client.disconnect()
  for (const n of [4, 5]) await publish(n)
  const back = event(subscription, 'subscribed')
  client.connect()
  t.match(await back, { recovered: true })
  await publish(6)
  await received.until(({ length }) => length === 6)

  t.same(bytesOf(received.publications), [1, 2, 3, 4, 5, 6].map(similar))
})

t.test('a binary namespace carries empty data, from clients and the API, with deltas and in history too', async (t) => {
  const { port, api } = await startRelay(t, FILE)
  const client = await connectClient(officialProtobufClient(t, { port }, 'websocket'))
  const plain = await subscribeTo(client, 'bytes:1')
  const received = collect(plain)
  const other = await connectClient(officialProtobufClient(t, { port }, 'websocket'))
  const deltas = collect(await subscribeTo(other, 'bytes:1', { delta: 'fossil' }))
  const none = Buffer.alloc(0)
  await plain.publish(none)
  await plain.publish(EVERY_BYTE)
  await api('publish', { channel: 'bytes:1', b64data: '' })
  await api('publish', { channel: 'bytes:1' })

  const expected = [none, EVERY_BYTE, none, none]
  for (const each of [received, deltas]) {
    await each.until(({ length }) => length === 4)
    t.same(bytesOf(each.publications), expected)
  }
  t.same(bytesOf((await plain.history({ limit: 10 })).publications), expected)
  const { body } = await api('history', { channel: 'bytes:1', limit: 10 })
  t.same(
    JSON.parse(body).result.publications.map(({ b64data }: { b64data: string }) => b64data),
    ['', EVERY_BYTE.toString('base64'), '', '']
  )
})

t.test('data that is not JSON closes JSON subscribers of a namespace without a format with 3506', async (t) => {
  const { port, api } = await startRelay(t, FILE)
  const protobuf = await connectClient(officialProtobufClient(t, { port }, 'websocket'))
  const subscription = await subscribeTo(protobuf, 'any:1')
  const received = collect(subscription)
  const json = await connectClient(officialClient(t, { port }, 'websocket'))
  const jsonReceived = collect(await subscribeTo(json, 'any:1'))
  const filtered = await connectClient(officialClient(t, { port }, 'websocket'))
  const filter = { key: 'kind', cmp: 'eq', val: 'text' } as const
  const filteredReceived = collect(await subscribeTo(filtered, 'any:1', { tagsFilter: filter }))
  const disconnected = event(json, 'disconnected')
  await api('publish', { channel: 'any:1', data: 'before' })
  // A client that is closed loses what was not written to it yet.
  await jsonReceived.until(({ length }) => length === 1)
  await subscription.publish(EVERY_BYTE)
  await api('publish', { channel: 'any:1', data: 'after', tags: { kind: 'text' } })

  t.match(await disconnected, { code: 3506, reason: 'inappropriate protocol' })
  t.same(jsonReceived.data, ['before'])
  await received.until(({ length }) => length === 3)
  t.same(bytesOf(received.publications), [Buffer.from('"before"'), EVERY_BYTE, Buffer.from('"after"')])
  await filteredReceived.until(({ length }) => length === 1)
  t.same(filteredReceived.data, ['after'])
})

for (const [title, command] of [
  ['recovers', (epoch: string) => ({ subscribe: { channel: 'any:1', recover: true, offset: 0, epoch } })],
  ['reads', () => ({ history: { channel: 'any:1', limit: 10 } })]
] as const) {
  t.test(`a JSON client that ${title} data that is not JSON is closed with 3506`, async (t) => {
    const { url, api } = await startRelay(t, FILE)
    await api('publish', { channel: 'any:1', data: 1 })
    const { body } = await api('publish', { channel: 'any:1', b64data: EVERY_BYTE.toString('base64') })
    const client = await connectedClient(t, url)
    client.send({ id: 2, ...command(JSON.parse(body).result.epoch) })

    t.equal(await client.closed, '3506 inappropriate protocol')
  })
}

t.test('an API subscribe of a JSON client to a binary namespace is error 108', async (t) => {
  const { url, port, api } = await startRelay(t, FILE)
  const protobuf = officialProtobufClient(t, { port }, 'websocket')
  const subscribed = event(protobuf, 'subscribed')
  await connectClient(protobuf)
  const json = await connectedClient(t, url)
  const { body } = await api('subscribe', { user: '42', channel: 'bytes:1' })

  t.same(JSON.parse(body), { error: NOT_AVAILABLE })
  t.match(await subscribed, { channel: 'bytes:1' })
  t.match(await json.request({ id: 2, presence_stats: { channel: 'any:1' } }), { id: 2, presence_stats: {} })
})

t.test('a JSON client receives error 108 for every command on a binary namespace', async (t) => {
  const { port } = await startRelay(t, FILE)
  const client = await connectClient(officialClient(t, { port }, 'websocket'))
  const subscription = client.newSubscription('bytes:1')
  const unsubscribed = event(subscription, 'unsubscribed')
  subscription.subscribe()

  t.match(await unsubscribed, { code: 108, reason: NOT_AVAILABLE.message })
  await t.rejects(client.publish('bytes:1', {}), NOT_AVAILABLE)
  await t.rejects(client.history('bytes:1', { limit: 1 }), NOT_AVAILABLE)
  await t.rejects(client.presence('bytes:1'), NOT_AVAILABLE)
})

t.test('a JSON client whose token has a binary channel receives error 108 to its connect', async (t) => {
  const { port } = await startRelay(t, FILE)
  const client = officialClient(t, { port }, 'websocket', {
    getToken: async () => relayToken({ sub: '42', channels: ['bytes:1'] })
  })
  const unsubscribed = event(client, 'disconnected')
  client.connect()

  t.match(await unsubscribed, { code: 108 })
})

t.test('a namespace that becomes binary with a reload refuses its JSON subscribers', async (t) => {
  const { port, relay } = await startRelay(t, FILE)
  const json = await subscribeTo(await connectClient(officialClient(t, { port }, 'websocket')), 'json:1')
  const protobuf = await subscribeTo(await connectClient(officialProtobufClient(t, { port }, 'websocket')), 'json:1')
  const received = collect(protobuf)
  const unsubscribed = event(json, 'unsubscribed')
  const namespaces = FILE.channel.namespaces.map((each) => ({ ...each, publication_data_format: 'binary' }))
  relay.configure(configOf({ channel: { namespaces } }))

  t.match(await unsubscribed, { code: 108 })
  await protobuf.publish(EVERY_BYTE)
  await received.until(({ length }) => length === 1)
  t.same(bytesOf(received.publications), [EVERY_BYTE])
})

t.test('data that does not have the format of its namespace receives error 107', async (t) => {
  const { port, api } = await startRelay(t, FILE)
  const client = await connectClient(officialProtobufClient(t, { port }, 'websocket'))
  const cases: [channel: string, data: Buffer, code: number | null][] = [
    ['any:1', Buffer.from('[1]'), null],
    ['any:1', EVERY_BYTE, null],
    ['any:1', Buffer.alloc(0), 107],
    ['json:1', Buffer.from('[1]'), null],
    ['json:1', EVERY_BYTE, 107],
    ['json:1', Buffer.alloc(0), 107],
    ['object:1', Buffer.from(' {"a":1}'), null],
    ['object:1', Buffer.from('[1]'), 107],
    ['object:1', Buffer.from('"{"'), 107],
    ['object:1', EVERY_BYTE, 107],
    ['object:1', Buffer.alloc(0), 107],
    ['bytes:1', EVERY_BYTE, null],
    ['bytes:1', Buffer.alloc(0), null]
  ]
  for (const [channel, data, code] of cases) {
    const published = client.publish(channel, data)
    await (code === null ? t.resolves(published) : t.rejects(published, { code }))
    const { body } = await api('publish', { channel, b64data: data.toString('base64') })
    t.equal(JSON.parse(body).error?.code ?? null, code)
  }
})

t.test('a broadcast reports the channels whose format the data does not have', async (t) => {
  const { api } = await startRelay(t, FILE)
  const channels = ['any:1', 'bytes:1', 'json:1', 'object:1']
  const many = Array.from({ length: 40 }, () => channels).flat()
  for (const list of [channels, many]) {
    const { body } = await api('broadcast', { channels: list, b64data: EVERY_BYTE.toString('base64') })
    t.same(
      JSON.parse(body).result.responses.map(({ error }: { error?: { code: number } }) => error?.code ?? null),
      list.map((channel) => (channel === 'bytes:1' || channel === 'any:1' ? null : 107))
    )
  }
})
