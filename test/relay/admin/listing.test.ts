import t from 'tap'
import type { AdminSurveys } from '../../../src/relay/admin/admin-surveys.js'
import { channelListPage } from '../../../src/relay/admin/channel-list.js'
import type {
  ChannelDetail,
  ChannelRow,
  ConnectionDetail,
  ConnectionRow,
  LivePublication,
  Page
} from '../../../src/relay/admin/contract.js'
import { FirstRows } from '../../../src/relay/admin/listing.js'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { ADMIN_PASSWORD, operator } from '../../helper/admin.js'
import { eventually } from '../../helper/eventually.js'
import { connectedClient } from '../../helper/raw-client.js'
import { collect, event, officialClient, startRelay } from '../../helper/relay.js'

const ON = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD, TRUST_PROXY: 'loopback' }
const HTML = 'floor:<img src=x onerror=alert(1)>"\'&'
const LISTENERS = { allow_subscribe_for_client: true, history_size: 3, history_ttl: '60s' }
const FILE = {
  channel: {
    namespaces: [
      { name: 'floor', ...LISTENERS, presence: true, schema: 'PositionBatch' },
      { name: 'global', ...LISTENERS },
      { name: 'bare', allow_subscribe_for_client: true },
      { name: 'limited', allow_subscribe_for_client: true, conflate: 'data[].id', allow_max_rate: true }
    ]
  }
}
const BATCH = { type: 'position-batch', data: [] }

t.test('the channel list', async (t) => {
  const relay = await startRelay(t, undefined, ON)
  const one = await operator(relay)
  const COUNT = 40_000
  const name = (index: number): string => `floor:${String(index).padStart(6, '0')}`
  // Calls the relay directly, without HTTP.
  for (let index = 0; index < COUNT; index++) void relay.relay.publish(name((index * 7919) % COUNT), PLAIN_PUBLICATION)
  const channels = (query: string) => one.read<Page<ChannelRow>>(`channels?${query}`)
  const names = ({ rows }: Page<ChannelRow>): string[] => rows.map((row) => row.name)

  t.test('the channel list pages the first 5,000 of 40,000 channels', async (t) => {
    const first = await channels('size=3')
    t.match(first, { total: COUNT, page: 0, size: 3 })
    t.same(names(first), [name(0), name(1), name(2)])
    t.same(names(await channels('size=100&page=49')).at(-1), name(4999))
    t.same(names(await channels('size=2&order=desc')), [name(COUNT - 1), name(COUNT - 2)])
    t.same(names(await channels('size=2&order=desc&page=2499')), [name(COUNT - 4999), name(COUNT - 5000)])
    t.equal((await channels('')).rows.length, 50)
  })

  t.test('the channel list finds channels by a part of the name', async (t) => {
    t.match(await channels('search=OOR:0001&size=1'), { total: 100, rows: [{ name: name(100) }] })
    t.match(await channels('search=nothing'), { total: 0, rows: [] })
    t.match(await channels('search=nothing&page=3'), { total: 0, rows: [] })
  })

  t.test('the channel list sorts by every column', async (t) => {
    const client = await connectedClient(t, relay.url)
    await client.request({ id: 2, subscribe: { channel: name(77) } })
    for (let count = 0; count < 10; count++) await relay.publish(name(78), BATCH)
    await relay.publish(name(79), BATCH)
    const top = async (sort: string): Promise<ChannelRow | undefined> =>
      (await channels(`sort=${sort}&order=desc&size=1&search=00007`)).rows[0]
    t.match(await top('subscribers'), { name: name(77), subscribers: 1 })
    t.match(await top('publishesPerSecond'), { name: name(78), historyLength: 11 })
    t.ok(((await top('publishesPerSecond'))?.publishesPerSecond ?? 0) >= 0.9)
    t.match(await top('historyLength'), { name: name(78) })
    t.match(await top('lastPublish'), { name: name(79) })
  })

  t.test('clients are served while a long channel list is built', async (t) => {
    // Moves the clock past the lifetime of the cached lists.
    relay.advance(2000)
    let turns = 0
    const turn = (): void => {
      turns++
      spinning = setImmediate(turn)
    }
    let spinning = setImmediate(turn)
    await channels('sort=lastPublish')
    clearImmediate(spinning)
    t.ok(turns > 5, `others had ${turns} turns meanwhile`)
  })

  t.test('a channel without subscribers is listed for an hour after its last publication', async (t) => {
    relay.advance(61 * 60_000)
    await one.signIn()
    await relay.publish(name(1), BATCH)
    t.match(await channels(''), { total: 1, rows: [{ name: name(1), subscribers: 0, historyLength: 1 }] })
  })

  const REJECTED = [
    'sort=x',
    'sort=__proto__',
    'order=up',
    'page=-1',
    'page=1e3',
    'page=100',
    'page=50&size=100',
    'size=0',
    'size=101',
    `search=${'x'.repeat(300)}`
  ]
  for (const query of REJECTED) {
    t.test(`the channel list rejects the query ${query.slice(0, 20)}`, async (t) => {
      t.match(await one.get(`channels?${query}`), { status: 400, body: /must/ })
      t.match(await one.get(`connections?${query}`), { status: 400, body: /must/ })
    })
  }
})

t.test('the first rows of a list are those of the complete list in order', async (t) => {
  const rows = Array.from({ length: 1000 }, (_, index) => (index * 7919) % 1000)
  const ascending = (left: number, right: number): number => left - right
  for (const count of [1, 7, 999, 1000, 5000]) {
    const first = new FirstRows(ascending, count)
    for (const row of rows) first.add(row)
    t.same(first.list(), { rows: [...rows].sort(ascending).slice(0, count), total: 1000 })
  }
})

t.test('channel details', async (t) => {
  const relay = await startRelay(t, FILE, ON)

  t.test('a page of channels has the counts of nodes that sent only other channels', async (t) => {
    const row = {
      name: 'bare:1',
      publishesPerSecond: 0,
      lastPublish: null,
      historyLength: null,
      keys: null,
      views: null
    }
    const other = { ...row, name: 'bare:2', subscribers: 9, limited: [] }
    const here = { ...row, subscribers: 5, limited: [{ rate: 1, subscribers: 2 }] }
    const there = { ...row, subscribers: 6, limited: [{ rate: 1, subscribers: 3 }] }
    const lists = [
      { node: 'here', result: { rows: [here], total: 7000 } },
      { node: 'there', result: { rows: [other], total: 9000 } }
    ]
    const surveys = {
      survey: async (name: string) =>
        name === 'adminChannelList'
          ? lists
          : [
              { node: 'here', result: [here] },
              { node: 'there', result: [there, other] }
            ]
      // A page of channels sends only these surveys.
    } as unknown as AdminSurveys
    const selection = { search: '', channel: '', user: '', kind: '' } as const
    const query = { ...selection, sort: 'subscribers', isDescending: true, page: 0, size: 50 } as const
    t.match(await channelListPage(surveys, relay.relay, query), {
      total: 9000,
      rows: [
        { name: 'bare:1', subscribers: 11, limited: [{ rate: 1, subscribers: 5 }] },
        { name: 'bare:2', subscribers: 9 }
      ]
    })
  })
  const one = await operator(relay)
  const detail = (name: string) => one.read<ChannelDetail>(`channel?name=${encodeURIComponent(name)}`)

  t.test('channel details contain the last publications and the presence', async (t) => {
    const client = await connectedClient(t, relay.url, 'ada')
    await client.request({ id: 2, subscribe: { channel: 'floor:1' } })
    for (let count = 1; count <= 5; count++) await relay.publish('floor:1', BATCH)
    const shown = await detail('floor:1')
    t.match(shown, {
      name: 'floor:1',
      namespace: 'floor',
      schema: 'PositionBatch',
      subscribers: 1,
      historyLength: 3,
      presence: { total: 1, clients: [{ user: 'ada' }] }
    })
    t.match(shown.example, { type: 'position-batch', data: [{ transmitterId: /./ }] }, 'an example of the schema')
    t.same(
      shown.publications.map(({ offset, data }) => `${offset} ${data}`),
      [5, 4, 3].map((offset) => `${offset} ${JSON.stringify(BATCH)}`)
    )
    t.ok((shown.lastPublish ?? 0) + 1 >= (shown.publications[0]?.time ?? Number.NaN), 'up to rounding')
  })

  t.test('channel details contain the number of subscribers by rate', async (t) => {
    for (const data of [{ max_rate: 0.5 }, { max_rate: 1 }, { max_rate: 1.5 }, {}]) {
      const client = await connectedClient(t, relay.url, 'ada')
      await client.request({ id: 2, subscribe: { channel: 'limited:1', data } })
    }

    // Live delivery starts after the reply.
    await eventually(async () => {
      const { limited } = await detail('limited:1')
      return limited.reduce((count, { subscribers }) => count + subscribers, 0) === 3
    })
    t.match(await detail('limited:1'), {
      subscribers: 4,
      limited: [
        { rate: 1, subscribers: 2 },
        { rate: 0.5, subscribers: 1 }
      ]
    })
  })

  t.test('a long publication is truncated in the details and can be read completely', async (t) => {
    const text = `<${'é'.repeat(500_000)}>`
    await relay.publish('global:long', { text })
    const { publications } = await detail('global:long')
    t.match(publications, [{ offset: 1, isTruncated: true, size: 1_000_013 }])
    t.equal(publications[0]?.data.length, 4096)
    const read = await one.read<LivePublication>('publication?channel=global:long&offset=1')
    t.match(read, { offset: 1, isTruncated: false, isBinary: false })
    t.same(JSON.parse(read.data), { text })

    const status = async (query: string): Promise<number> => (await one.get(`publication?${query}`)).status
    t.equal(await status('channel=global:long&offset=2'), 404)
    t.equal(await status('channel=bare:1&offset=1'), 404)
    t.equal(await status('channel=nonsense:1&offset=1'), 404)
    for (const offset of ['', '0', '-1', '1.5', 'x', '99999999999999999999'])
      t.equal(await status(`channel=global:long&offset=${offset}`), 400)
  })

  t.test('channel details have an empty history after history_remove', async (t) => {
    await relay.api('history_remove', { channel: 'floor:1' })
    t.match(await detail('floor:1'), { historyLength: 0, publications: [] })
  })

  t.test('channel details omit history and presence that the namespace does not have', async (t) => {
    t.match(await detail('bare:1'), {
      historyLength: null,
      presence: null,
      schema: null,
      example: null,
      publications: [],
      lastPublish: null
    })
    t.match(await one.get('channel?name=nonsense:1'), { status: 404 })
    t.match(await one.get('channel'), { status: 400 })
    t.match(await one.get(`channel?name=floor:${'x'.repeat(1000)}`), { status: 400 })
  })

  t.test('a channel name with HTML is returned unchanged', async (t) => {
    await relay.publish(HTML, BATCH)
    const listed = await one.get('channels')
    t.match(listed.headers, { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' })
    const { rows }: Page<ChannelRow> = JSON.parse(listed.body)
    t.ok(rows.some(({ name }) => name === HTML))
    t.match(await detail(HTML), { name: HTML, publications: [{ channel: HTML }] })
  })
})

t.test('test publications', async (t) => {
  const relay = await startRelay(t, FILE, ON)
  const one = await operator(relay)

  t.test('a test publication reaches clients with unchanged bytes', async (t) => {
    const client = officialClient(t, relay, 'websocket')
    const subscription = client.newSubscription('bare:1')
    const collected = collect(subscription)
    subscription.subscribe()
    client.connect()
    await event(subscription, 'subscribed')
    const request = (isConfirmed: boolean): string =>
      `{"data": {"a": 1.0, "b": "\\u00e9"}, "channel": "bare:1", "isConfirmed": ${isConfirmed}}`
    const unconfirmed = await one.post('publish', request(false))
    t.match(unconfirmed, { status: 409, body: /CONFIRMATION_REQUIRED.*1 client will/ })
    const { status, body } = await one.post('publish', request(true))
    t.match({ status, body: JSON.parse(body) }, { status: 200, body: { offset: 0, epoch: '' } })
    await collected.until(({ length }) => length === 1)
    t.same(collected.data, [{ a: 1, b: 'é' }], 'nothing was published before the confirmation')
  })

  t.test('a test publication is checked against the schema', async (t) => {
    const accepted = await one.post('publish', { channel: 'floor:1', data: BATCH })
    t.match({ status: accepted.status, body: JSON.parse(accepted.body) }, { status: 200, body: { offset: 1 } })
    const rejected = await one.post('publish', { channel: 'floor:1', data: { type: 'position-batch' } })
    t.match(rejected, { status: 400, body: /PUBLISH_REJECTED.*PositionBatch/ })
  })

  const REJECTED: readonly (readonly [string, string, number])[] = [
    ['no channel', '{"data":1}', 400],
    ['no data', '{"channel":"floor:1"}', 400],
    ['an unknown namespace', '{"channel":"nonsense:1","data":1}', 400],
    ['more fields', '{"channel":"bare:1","data":1,"skip_history":true}', 400],
    ['two that are data', '{"channel":"bare:1","data":1,"data":2}', 400],
    ['no JSON', '{"channel":', 400],
    ['a long body', `{"channel":"bare:1","data":"${'x'.repeat(70_000)}"}`, 413]
  ]
  for (const [name, body, status] of REJECTED) {
    t.test(`a test publication rejects ${name}`, async (t) => {
      const response = await one.post('publish', body)
      t.equal(response.status, status)
      t.type(JSON.parse(response.body).error.message, 'string')
    })
  }

  t.test('a test publication rejects a chunked body above the limit', async (t) => {
    const headers = { 'transfer-encoding': 'chunked' }
    const body = `{"channel":"bare:1","data":"${'x'.repeat(70_000)}"}`
    t.equal((await one.post('publish', body, { headers })).status, 413)
  })
})

t.test('the connection list', async (t) => {
  const relay = await startRelay(t, FILE, ON)
  const one = await operator(relay)
  const connections = (query = '') => one.read<Page<ConnectionRow>>(`connections?${query}`)
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
  const ada = await connectedClient(t, relay.url, 'ada', from('192.0.2.1'))
  const adaToo = await connectedClient(t, relay.url, 'ada', from('192.0.2.2'))
  await ada.request({ id: 2, subscribe: { channel: 'floor:1' } })
  const bob = officialClient(t, relay, 'sse', { version: '5.3.4' })
  bob.connect()
  await event(bob, 'connected')

  t.test('the connection list contains user, address and transport', async (t) => {
    const { rows, total } = await connections('sort=address')
    t.equal(total, 3)
    t.match(rows, [
      {
        user: '42',
        address: '127.0.0.1',
        clientName: 'js',
        transport: 'sse',
        channels: 0,
        node: 'relay',
        isBehind: false
      },
      { user: 'ada', address: '192.0.2.1', transport: 'websocket', channels: 1 },
      { user: 'ada', address: '192.0.2.2', transport: 'websocket', channels: 0 }
    ])
    t.equal(rows[0]?.clientVersion, '5.3.4')
    t.equal(rows[1]?.clientName, '', 'the client reports no name')
    t.ok(rows.every(({ since }) => since <= Date.now() && since > Date.now() - 600_000))
  })

  t.test('the connection list finds connections by user, address and client', async (t) => {
    t.equal((await connections('search=ADA')).total, 2)
    const found = await connections('search=192.0.2.2')
    t.equal(found.total, 1)
    t.equal((await connections(`search=${found.rows[0]?.client}`)).total, 1)
    t.equal((await connections('search=nobody')).total, 0)
  })

  t.test('the connection list finds connections by the name of the client library', async (t) => {
    t.match(await connections('search=JS%205.3'), { total: 1, rows: [{ user: '42' }] })
    t.match(await connections('sort=clientName&order=desc&size=1'), { rows: [{ clientName: 'js' }] })
  })

  t.test('the connection list contains the subscribers of a channel', async (t) => {
    t.match(await connections('channel=floor:1'), { total: 1, rows: [{ user: 'ada', address: '192.0.2.1' }] })
    t.match(await connections('channel=floor:1&search=192.0.2.2'), { total: 0 })
    t.match(await connections('channel=floor:2'), { total: 0 })
    t.equal((await one.get(`connections?channel=${'x'.repeat(2000)}`)).status, 400)
  })

  t.test('connection details contain a page of the channels', async (t) => {
    const names = Array.from({ length: 60 }, (_, index) => `global:${String(index).padStart(2, '0')}`)
    for (const [index, channel] of names.entries()) await adaToo.request({ id: index + 2, subscribe: { channel } })
    const [row] = (await connections('search=192.0.2.2')).rows
    const read = (query: string) => one.read<ConnectionDetail>(`connection?client=${row?.client}${query}`)
    const first = await read('')
    t.match(first, { user: 'ada', address: '192.0.2.2', protocol: 'json', channels: 60, subscriptions: { total: 60 } })
    t.equal(first.subscriptions.rows.length, 50)
    t.match(first.subscriptions.rows[0], { channel: 'global:00', isServerSide: false, rate: null })
    t.match((await read('&page=1')).subscriptions.rows.at(-1), { channel: 'global:59' })
    t.match(await read('&search=GLOBAL:3'), { channels: 60, subscriptions: { total: 10 } })
    t.match((await read('&order=desc&size=1')).subscriptions.rows, [{ channel: 'global:59' }])

    t.equal((await one.get('connection?client=unknown')).status, 404)
    t.equal((await one.get('connection')).status, 400)
    t.equal((await one.get('connection?client=unknown&sort=rate')).status, 400)
  })

  t.test('disconnect closes one connection or all connections of a user', async (t) => {
    const { rows } = await connections('search=192.0.2.1')
    const [first] = rows
    t.equal(
      (await one.post('disconnect', { user: 'bob', client: first?.client })).status,
      204,
      'the connection of another user is not closed'
    )
    t.equal((await one.post('disconnect', { user: 'ada', client: first?.client })).status, 204)
    t.equal(await ada.closed, '3503 force disconnect')
    t.equal(adaToo.ws.readyState, adaToo.ws.OPEN)
    t.equal((await one.post('disconnect', { user: 'ada', client: '' })).status, 204)
    t.equal(await adaToo.closed, '3503 force disconnect')
    relay.advance(2000)
    t.equal((await connections()).total, 1, 'others stay')
    for (const body of [{}, { user: 'ada' }, { user: 1, client: '' }, [], { user: 'a', client: '', x: 1 }]) {
      t.equal((await one.post('disconnect', body)).status, 400)
    }
  })
})
