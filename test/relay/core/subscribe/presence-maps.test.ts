import t from 'tap'
import { EngineError } from '../../../../src/relay/core/engine.js'
import type { Publication } from '../../../../src/relay/core/publication.js'
import { coreRelay } from '../../../helper/relay-core.js'
import { configOf } from '../../../helper/relay-rules.js'
import { required } from '../../../helper/required.js'

const FILE = {
  client: { allow_anonymous_connect_without_token: true },
  channel: {
    namespaces: [
      {
        name: 'chat',
        allow_subscribe_for_client: true,
        allow_subscribe_for_anonymous: true,
        map_clients_presence_channel_prefix: 'clients:',
        map_users_presence_channel_prefix: 'users:'
      },
      { name: 'clients', subscription_type: 'map_clients', map: { mode: 'recoverable', key_ttl: '60s' } },
      { name: 'users', subscription_type: 'map_users', map: { mode: 'ephemeral', key_ttl: '9s' } }
    ]
  }
}

const setUp = (parts: Parameters<typeof coreRelay>[1] = {}) => {
  const core = coreRelay(FILE, parts)
  const changes: string[] = []
  const observe =
    (name: string) =>
    ({ key, removed }: Publication): void =>
      void changes.push(`${removed ? '-' : '+'}${name} ${key}`)
  core.relay.observeChannel('clients:chat:1', observe('client'))
  core.relay.observeChannel('users:chat:1', observe('user'))
  const keys = async (channel: string) => {
    const state = await core.relay.maps.readState(
      { channel, cursor: '', limit: -1, key: '', revisionEpoch: null },
      100_000
    )
    return state !== null && 'entries' in state ? state.entries.map(({ key }) => key) : []
  }
  /** Advances the time as the process does: the tick, and the expiry of keys. */
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      await core.advance(1_000)
      await core.relay.maps.expire()
    }
  }
  return { ...core, advance, changes, keys }
}

const SUBSCRIBE = { id: 2, subscribe: { channel: 'chat:1' } }
const UNSUBSCRIBE = { id: 3, unsubscribe: { channel: 'chat:1' } }

t.test('a subscription writes its client and its user into their maps', async (t) => {
  const { connected, relay, changes } = setUp()
  const client = await connected('42', { info: { name: 'Ada' } })
  await client.send(SUBSCRIBE)
  const { id } = client.client
  t.same(changes, [`+client ${id}`, '+user 42'])
  const read = (channel: string) =>
    relay.maps.readState({ channel, cursor: '', limit: 1, key: '', revisionEpoch: null }, 100_000)
  const ofClients = await read('clients:chat:1')
  const ofUsers = await read('users:chat:1')
  t.match(ofClients, { entries: [{ key: id, data: 'null', info: /"user":"42".*"conn_info":\{"name":"Ada"\}/ }] })

  t.match(ofUsers, { entries: [{ key: '42', data: 'null', info: null }] })
})

t.test('the entry of a client is removed when its subscription ends, and that of a user expires', async (t) => {
  const { connected, changes, advance } = setUp()
  const one = await connected('42')
  const other = await connected('42')
  await one.send(SUBSCRIBE)
  await other.send(SUBSCRIBE)
  changes.length = 0
  await one.send(UNSUBSCRIBE)
  t.same(changes, [`-client ${one.client.id}`])
  other.client.connectionLost()
  t.same(changes.slice(1), [`-client ${other.client.id}`])
  await advance(8_000)
  t.equal(changes.length, 2)
  await advance(2_000)

  t.same(changes.slice(2), ['-user 42'])
})

t.test('entries stay as long as the subscription, without further changes', async (t) => {
  const { connected, changes, keys, advance } = setUp()
  const client = await connected('42')
  await client.send(SUBSCRIBE)
  await advance(20_000)
  t.same(await keys('users:chat:1'), ['42'])
  t.equal(changes.length, 2)

  t.equal(client.closed, null)
})

t.test('entries are renewed several times within their lifetime', async (t) => {
  const { connected, engine, advance } = setUp()
  const written: string[] = []
  const write = engine.maps.write.bind(engine.maps)
  engine.maps.write = (channel, ...more) => {
    written.push(channel)
    return write(channel, ...more)
  }
  const client = await connected('42')
  await client.send(SUBSCRIBE)
  t.same(written.splice(0), ['clients:chat:1', 'users:chat:1'])
  await advance(9_000)

  t.same(written, Array(3).fill('users:chat:1'))
})

t.test('an anonymous client is in the map of clients only', async (t) => {
  const { client, changes } = setUp()
  const anonymous = client()
  await anonymous.send({ id: 1, connect: {} })
  await anonymous.send({ id: 2, subscribe: { channel: 'chat:1' } })

  t.same(
    changes.filter((change) => change.startsWith('+user')),
    []
  )
})

t.test('a client that subscribes again is removed before it is written again', async (t) => {
  const { connected, changes } = setUp()
  const client = await connected('42')
  await client.send(SUBSCRIBE, UNSUBSCRIBE, { ...SUBSCRIBE, id: 4 })
  const { id } = client.client

  t.same(
    changes.filter((change) => change.includes('client')),
    [`+client ${id}`, `-client ${id}`, `+client ${id}`]
  )
})

t.test('a failed subscription leaves no entry', async (t) => {
  const { connected, changes } = setUp()
  const client = await connected('42')
  await client.send({ id: 2, subscribe: { channel: 'chat:1', token: 'invalid' } })

  t.same(changes, [])
})

t.test('a write that fails because the engine is down is repeated', async (t) => {
  const { connected, engine, changes, advance } = setUp()
  const write = engine.maps.write.bind(engine.maps)
  engine.maps.write = () => {
    throw new EngineError('down')
  }
  const client = await connected('42')
  await client.send(SUBSCRIBE)
  await advance(2_000)
  t.same(changes, [])
  engine.maps.write = write
  await advance(2_000)

  t.same(changes, [`+client ${client.client.id}`, '+user 42'])
})

t.test('a reload that removes the map of clients ends its renewal and keeps the subscription', async (t) => {
  const { connected, relay, advance, changes } = setUp()
  const client = await connected('42')
  await client.send(SUBSCRIBE)
  const { channels, ...rest } = configOf(FILE)
  const namespaces = new Map([...channels.namespaces].filter(([name]) => name !== 'clients'))
  relay.configure({ ...rest, channels: { ...channels, namespaces } })
  await advance(22_000)
  await client.send(UNSUBSCRIBE)
  t.equal(client.closed, null)

  t.equal(changes.length, 2)
})

t.test('a reload that gives the map of clients another type leaves its entries to their new writers', async (t) => {
  const { connected, relay, keys } = setUp()
  const client = await connected('42')
  await client.send(SUBSCRIBE)
  const { channels, ...rest } = configOf(FILE)
  const namespaces = new Map(channels.namespaces)
  namespaces.set('clients', { ...required(namespaces.get('clients')), subscriptionType: 'map' })
  relay.configure({ ...rest, channels: { ...channels, namespaces } })
  await client.send(UNSUBSCRIBE)

  t.same(await keys('clients:chat:1'), [client.client.id])
})
