import t from 'tap'
import { type Answer, HANG, RawAnswer, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { emulationBytes, frameOf, repliesIn } from '../../helper/protobuf.js'
import type { Json } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import { connectResult, UNIDIRECTIONAL_KINDS, uniHttpStream } from '../../helper/unidirectional.js'
import { inSeconds, proxiedFile, withRefreshProxy } from './fixture.js'

t.test('transports', async (t) => {
  const backend = await startEventBackend(t)
  const headers = { http_headers: ['cookie'], emulated_headers: ['authorization'] }
  const edge = await startRelay(t, proxiedFile(backend, headers, withRefreshProxy(backend, headers)))
  t.beforeEach(() => backend.reset())

  for (const [kind, connect] of Object.entries(UNIDIRECTIONAL_KINDS)) {
    const transport = kind.split(' ')[0]

    t.test(`${kind} connects with the result of the backend`, async (t) => {
      backend.on('connect', () => new RawAnswer(200, '{"result":{"user":"7","data":{"a":\n1},"channels":["room:1"]}}'))
      const request = { data: { n: 1 }, name: 'app', headers: { Authorization: 'Bearer 1' } }
      const receiver = await connect(t, edge.url, request, { cookie: 'a=1', 'x-other': '1' })
      t.match(await connectResult(receiver), { client: String, data: { a: 1 }, subs: { 'room:1': {} } })
      const [asked] = backend.of('connect')
      t.match(asked?.body, { transport, protocol: 'json', data: { n: 1 }, name: 'app' })
      t.match(asked?.headers, { cookie: 'a=1', authorization: 'Bearer 1' })
      await edge.publish('room:1', 'x')
      await eventually(() => receiver.messages.some(({ pub }) => pub?.data === 'x'))
      t.same(backend.of('subscribe'), [])
    })

    t.test(`${kind} is closed where others receive an error`, async (t) => {
      const cases: readonly (readonly [answer: Answer, code: number])[] = [
        [new RawAnswer(500), 3004],
        [{ error: { code: 1401, message: 'own' } }, 3004],
        [{ error: { code: 103, message: 'permission denied' } }, 3507],
        [{ error: { code: 111, message: 'too many requests', temporary: true } }, 3013],
        [{ result: { channels: ['none:1'] } }, 3004],
        [{ result: { expire_at: inSeconds(-5) } }, 3005],
        [{ disconnect: { code: 4501, reason: 'banned' } }, 4501],
        [{}, 3501]
      ]
      for (const [answer, code] of cases) {
        backend.on('connect', answer)
        const receiver = await connect(t, edge.url, {})
        await receiver.ended
        t.match(receiver.messages.at(-1), { disconnect: { code } }, JSON.stringify(answer))
      }
    })

    t.test(`${kind} with a token is not asked about, and a lost connection aborts a call`, async (t) => {
      await connectResult(await connect(t, edge.url, { token: relayToken({ sub: '1' }) }))
      t.same(backend.requests, [])
      backend.on('connect', HANG)
      const asked = backend.next('connect')
      const receiver = await connect(t, edge.url, {})
      const request = await asked
      receiver.close()
      await eventually(() => request.isAborted, { label: 'the request is aborted' })
    })
  }

  t.test('an expired unidirectional connection is closed if the backend does not prolong it', async (t) => {
    const own = await startRelay(t, proxiedFile(backend, {}, withRefreshProxy(backend)))
    backend.on('connect', { result: { user: '7', expire_at: inSeconds(100) } })
    backend.on('refresh', { result: { expired: true } })
    const receiver = await uniHttpStream(t, own.url, {})
    const connected = await connectResult(receiver)
    t.notOk('expires' in connected)
    own.advance(101_000)
    await receiver.ended
    t.match(receiver.messages.at(-1), { disconnect: { code: 3005 } })
    t.match(backend.of('refresh')[0]?.body, { transport: 'uni_http_stream', user: '7', client: connected.client })
  })

  /** Opens a stream and resolves with its first message. */
  const openStream = async (path: string, body: string | Buffer, type: string): Promise<Buffer> => {
    const abort = new AbortController()
    t.teardown(() => abort.abort())
    const { body: stream } = await fetch(`${edge.url}${path}`, {
      method: 'POST',
      body,
      headers: { cookie: 'stream=1', 'content-type': type },
      signal: abort.signal
    })
    const reader = stream?.getReader()
    // The stream of server-sent events begins with an empty line.
    for (let bytes = Buffer.alloc(0); ; ) {
      const { value = new Uint8Array() } = (await reader?.read()) ?? {}
      bytes = Buffer.concat([bytes, value])
      if (bytes.toString().trim() !== '') return bytes
    }
  }

  for (const [path, transport] of [
    ['/connection/http_stream', 'http_stream'],
    ['/connection/sse', 'sse']
  ] as const) {
    t.test(`commands of ${transport} carry the headers of the stream, not those of their own request`, async (t) => {
      backend.on('connect', { result: { user: '7' } })
      const first = await openStream(path, JSON.stringify({ id: 1, connect: {} }), 'application/json')
      const { connect }: { connect: Json } = JSON.parse(
        first
          .toString()
          .trim()
          .replace(/^data: /, '')
      )
      const data = JSON.stringify({ id: 2, subscribe: { channel: 'room:1' } })
      const { status } = await send(edge.url, '/emulation', {
        method: 'POST',
        body: JSON.stringify({ session: connect.session, node: connect.node, data }),
        headers: { cookie: 'emulation=1' }
      })
      t.equal(status, 204)
      const request = await eventually(() => backend.of('subscribe')[0])
      t.equal(request.headers.cookie, 'stream=1')
      t.match(request.body, { transport, protocol: 'json', user: '7', client: connect.client })
    })
  }

  t.test('a protobuf client calls the backend over http_stream', async (t) => {
    backend.on('connect', { result: { user: '7', data: { hello: 1 } } })
    const type = 'application/octet-stream'
    const connect = { id: 1, connect: { data: Buffer.from('{"n":1}') } }
    const [reply] = repliesIn(await openStream('/connection/http_stream', frameOf(connect), type))
    t.match(reply?.connect?.data, { hello: 1 })
    const { node, session } = reply?.connect ?? {}
    const data = frameOf({ id: 2, rpc: { method: 'm', data: Buffer.from('[1]') } })
    await send(edge.url, '/emulation', {
      method: 'POST',
      body: emulationBytes({ node, session, data }),
      headers: { 'content-type': type }
    })
    const request = await eventually(() => backend.of('rpc')[0])
    t.match(request.body, { transport: 'http_stream', protocol: 'protobuf', method: 'm', data: [1] })
    t.match(backend.of('connect')[0]?.body, { data: { n: 1 } })
    t.equal(request.headers.cookie, 'stream=1')
  })
})
