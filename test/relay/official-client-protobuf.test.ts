import t from 'tap'
import {
  collect,
  connectClient,
  officialClient,
  officialProtobufClient,
  startRelay,
  subscribeTo,
  type TransportName
} from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'
import { NAMESPACES, officialClientContract } from './official-client-contract.js'

// Server-sent events carry text only.
const PROTOBUF_TRANSPORTS: readonly TransportName[] = ['websocket', 'http_stream']

const bytes = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))
const decode = (data: unknown): unknown =>
  data instanceof Uint8Array && data.length > 0 ? JSON.parse(Buffer.from(data).toString()) : undefined

officialClientContract({
  name: 'the protobuf client',
  transports: PROTOBUF_TRANSPORTS,
  create: officialProtobufClient,
  encode: bytes,
  decode
})

for (const transport of PROTOBUF_TRANSPORTS) {
  t.test(`JSON and protobuf clients of a channel receive the same publications over ${transport}`, async (t) => {
    const { port, publish } = await startRelay(t, NAMESPACES)
    const json = await connectClient(officialClient(t, { port }, transport))
    const protobuf = await connectClient(officialProtobufClient(t, { port }, transport))
    const [atJson, atProtobuf] = [await subscribeTo(json, 'chat:1'), await subscribeTo(protobuf, 'chat:1')]
    const [receivedJson, receivedProtobuf] = [collect(atJson), collect(atProtobuf)]
    await atJson.publish({ from: 'json' })
    await atProtobuf.publish(bytes({ from: 'protobuf' }))
    await publish('chat:1', { from: 'api' })
    await receivedJson.until(({ length }) => length === 3)
    await receivedProtobuf.until(({ length }) => length === 3)

    t.same(receivedJson.data, [{ from: 'json' }, { from: 'protobuf' }, { from: 'api' }])
    t.same(receivedProtobuf.data.map(decode), receivedJson.data)
  })

  t.test(`the protobuf client over ${transport} receives error 107 if data must be JSON and is not`, async (t) => {
    const { port } = await startRelay(t, { channel: { ...NAMESPACES.channel, publication_data_format: 'json' } })
    const client = await connectClient(officialProtobufClient(t, { port }, transport))
    const subscription = await subscribeTo(client, 'chat:1')
    for (const data of [[], [0xff, 0xfe], Buffer.from('{"a":'), Buffer.from('1 2'), [0x22, 0xff, 0x22]])
      await t.rejects(subscription.publish(Uint8Array.from(data)), { code: 107 })
  })

  t.test(`the protobuf client over ${transport} refreshes its connection before it expires`, async (t) => {
    const { port } = await startRelay(t, NAMESPACES)
    let requestCount = 0
    let refreshed = (): void => undefined
    const twice = new Promise<void>((resolve) => {
      refreshed = resolve
    })
    const getToken = async (): Promise<string> => {
      if (++requestCount === 3) refreshed()
      return relayToken({ sub: '42' }, { lifetimeSeconds: requestCount === 3 ? 3600 : 1 })
    }
    const client = await connectClient(officialProtobufClient(t, { port }, transport, { getToken }))
    await twice
    await t.rejects(client.rpc('x', bytes({})), { code: 108 }, 'the connection is still open')
  })
}
