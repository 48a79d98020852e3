import t from 'tap'
import type { Publication } from '../../../../src/relay/core/publication.js'
import { coreRelay, type FakeClient, type Message } from '../../../helper/relay-core.js'

const setUp = async (
  map: Message,
  { options = {}, client: clientOptions = {} }: { options?: Message; client?: Message } = {}
) => {
  const core = coreRelay({
    client: { allow_anonymous_connect_without_token: true, ...clientOptions },
    channel: {
      namespaces: [
        {
          name: 'map',
          subscription_type: 'map',
          allow_subscribe_for_client: true,
          map: { mode: 'recoverable', key_ttl: '60s', ...map },
          ...options
        },
        { name: 'clients', subscription_type: 'map_clients', map: { mode: 'ephemeral', key_ttl: '60s', ...map } },
        { name: 'chat', allow_publish_for_client: true }
      ]
    }
  })
  const delivered: Publication[] = []
  core.relay.observeChannel('map:1', (publication) => void delivered.push(publication))
  const client = await core.connected('42', { info: { name: 'Ada' } })
  /** The code of the error, the reason of the close, or the reply. */
  const publish = async (request: Message, by: FakeClient = client): Promise<unknown> => {
    const [reply] = await by.send({ id: 7, publish: { channel: 'map:1', type: 1, ...request } })
    if (by.closed !== null) return by.closed
    return (reply as { error?: { code: number } }).error?.code ?? reply
  }
  const anonymous = async (): Promise<FakeClient> => {
    const connecting = core.client()
    await connecting.send({ id: 1, connect: {} })
    return connecting
  }
  return { ...core, delivered, connectedClient: client, publish, anonymous }
}

const DONE = { id: 7, publish: {} }

t.test('a client with permission writes and removes entries of a map', async (t) => {
  const { publish, delivered } = await setUp({ allow_publish_for_client: true, allow_remove_for_client: true })
  t.same(await publish({ key: 'a', data: { x: 1 } }), DONE)
  t.same(await publish({ key: 'a', removed: true }), DONE)
  t.same(await publish({ key: 'a', removed: true }), DONE, 'a missing key is no error')

  const [written, removed] = delivered
  t.match(written, { key: 'a', data: '{"x":1}', offset: 1, tags: null })
  t.match(JSON.parse(written?.info ?? ''), { user: '42', conn_info: { name: 'Ada' } })
  t.match(removed, { key: 'a', removed: true, offset: 2 })
  t.equal(delivered.length, 2)
})

t.test('writing and removing have permissions of their own', async (t) => {
  const writer = await setUp({ allow_publish_for_client: true })
  t.same(await writer.publish({ key: 'a', data: 1 }), DONE)
  t.equal(await writer.publish({ key: 'a', removed: true }), 103)
  const remover = await setUp({ allow_remove_for_client: true })
  t.equal(await remover.publish({ key: 'a', data: 1 }), 103)
  t.same(await remover.publish({ key: 'a', removed: true }), DONE)
  const none = await setUp({})
  t.equal(await none.publish({ key: 'a', data: 1 }), 103)

  t.equal(await none.publish({ key: 'a', removed: true }), 103)
})

t.test('permissions for subscribers do not apply to clients that are not subscribed', async (t) => {
  const { publish } = await setUp({ allow_publish_for_subscriber: true, allow_remove_for_subscriber: true })
  t.equal(await publish({ key: 'a', data: 1 }), 103)

  t.equal(await publish({ key: 'a', removed: true }), 103)
})

t.test('subscribers with permission write and remove entries until they unsubscribe', async (t) => {
  const { publish, connectedClient } = await setUp({
    allow_publish_for_subscriber: true,
    allow_remove_for_subscriber: true
  })
  await connectedClient.send({ id: 2, subscribe: { channel: 'map:1', type: 1, phase: 2 } })
  t.same(await publish({ key: 'a', data: 1 }), DONE)
  t.same(await publish({ key: 'a', removed: true }), DONE)
  await connectedClient.send({ id: 3, unsubscribe: { channel: 'map:1' } })

  t.equal(await publish({ key: 'a', data: 1 }), 103)
})

t.test('remove_client_on_unsubscribe removes the key of a client when its subscription ends', async (t) => {
  const { publish, delivered, connected } = await setUp({
    client_key: 'client_id',
    allow_publish_for_client: true,
    remove_client_on_unsubscribe: true
  })
  const subscribed = async (): Promise<FakeClient> => {
    const client = await connected('42')
    await client.send({ id: 2, subscribe: { channel: 'map:1', type: 1, phase: 2 } })
    await publish({ data: 1 }, client)
    return client
  }
  const one = await subscribed()
  const other = await subscribed()
  t.equal(delivered.length, 2)
  await one.send({ id: 3, unsubscribe: { channel: 'map:1' } })
  t.match(delivered.slice(2), [{ key: one.client.id, removed: true }])
  other.client.connectionLost()

  t.match(delivered.slice(3), [{ key: other.client.id, removed: true }])
})

t.test('anonymous clients need a permission of their own', async (t) => {
  const closed = await setUp({ allow_publish_for_client: true, allow_remove_for_client: true })
  t.equal(await closed.publish({ key: 'a', data: 1 }, await closed.anonymous()), 103)
  const open = await setUp({ allow_publish_for_client: true, allow_publish_for_anonymous: true })
  t.same(await open.publish({ key: 'a', data: 1 }, await open.anonymous()), DONE)

  t.equal(await open.publish({ key: 'a', removed: true }, await open.anonymous()), 103)
})

t.test('client_key "client_id" replaces the key of writes and removals', async (t) => {
  const { publish, delivered, connectedClient } = await setUp({
    client_key: 'client_id',
    allow_publish_for_client: true,
    allow_remove_for_client: true
  })
  t.same(await publish({ key: 'other', data: 1 }), DONE)
  t.same(await publish({ data: 1 }), DONE)
  t.same(await publish({ key: 'other', removed: true }), DONE)

  t.same(
    delivered.map(({ key }) => key),
    Array(3).fill(connectedClient.client.id)
  )
})

t.test('client_key "user_id" replaces the key, and anonymous clients have none', async (t) => {
  const { publish, delivered, anonymous } = await setUp({
    client_key: 'user_id',
    allow_publish_for_client: true,
    allow_publish_for_anonymous: true
  })
  t.same(await publish({ key: 'other', data: 1 }), DONE)
  t.equal(await publish({ key: 'other', data: 1 }, await anonymous()), 103)

  t.same(
    delivered.map(({ key }) => key),
    ['42']
  )
})

t.test('invalid writes of clients receive an error and change nothing', async (t) => {
  const all = { allow_publish_for_client: true, allow_remove_for_client: true, max_keys: 1 }
  const { publish, delivered } = await setUp(all, { options: { publication_data_format: 'json_object' } })
  const cases: readonly (readonly [request: Message, code: number])[] = [
    [{ data: {} }, 107],
    [{ key: '', data: {} }, 107],
    [{ removed: true }, 107],
    [{ key: 'x'.repeat(1025), data: {} }, 107],
    [{ key: 'x'.repeat(1025), removed: true }, 107],
    [{ key: '\ud800', data: {} }, 107],
    [{ key: 'a' }, 107],
    [{ key: 'a', data: [1] }, 107],
    [{ key: 'a', data: {}, type: 0 }, 103],
    [{ key: 'a', data: {}, type: undefined }, 103],
    [{ key: 'a', data: {}, type: 2 }, 103],
    [{ key: 'a', data: {}, channel: 'chat:1' }, 103],
    [{ key: 'a', data: {}, channel: 'clients:1' }, 103],
    [{ key: 'a', data: {}, channel: 'none:1' }, 102],
    [{ key: 'a', data: {}, channel: `map:${'x'.repeat(300)}` }, 107],
    [{ key: 'a', data: {}, channel: 'map:é' }, 107]
  ]
  for (const [request, code] of cases) t.equal(await publish(request), code, JSON.stringify(request).slice(0, 60))
  t.same(delivered, [])
  t.same(await publish({ key: 'x'.repeat(1024), data: {} }), DONE)

  t.equal(await publish({ key: 'second', data: {} }), 106)
})

t.test('malformed writes of clients close the connection', async (t) => {
  for (const request of [{ channel: '' }, { key: 7 }, { removed: 'yes' }, { type: 'map' }, { type: 1.5 }]) {
    const { publish } = await setUp({ allow_publish_for_client: true })
    t.equal(await publish({ key: 'a', data: 1, ...request }), '3501 bad request', JSON.stringify(request))
  }
})

t.test('client.insecure allows all writes', async (t) => {
  const { publish } = await setUp({}, { client: { insecure: true } })
  t.same(await publish({ key: 'a', data: 1 }), DONE)

  t.same(await publish({ key: 'a', removed: true }), DONE)
})
