import t from 'tap'
import { HANG, RawAnswer, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { connectClient, officialClient, officialProtobufClient, startRelay, TRANSPORTS } from '../../helper/relay.js'
import { CODECS, connectedWithToken, proxiedFile } from './fixture.js'

/** JavaScript cannot represent it. */
const LONG_NUMBER = '12345678901234567890.10'

t.test('rpc', async (t) => {
  const backend = await startEventBackend(t)
  const edge = await startRelay(t, proxiedFile(backend, {}, { concurrency: 4 }))
  t.beforeEach(() => backend.reset())

  for (const codec of CODECS) {
    t.test(`a ${codec} client receives the data of the backend exactly as it was sent`, async (t) => {
      const client = await connectedWithToken(t, codec, edge.url)
      backend.on('rpc', () => new RawAnswer(200, `{"result": {"data": {\n "n": ${LONG_NUMBER} }}}`))

      const reply = await client.request({ id: 2, rpc: { method: 'count', data: `{"n":${LONG_NUMBER}}` } })

      t.match(reply, { id: 2, rpc: { data: { n: Number } } })
      t.match(client.received(), `"n": ${LONG_NUMBER}`)
      const [request] = backend.of('rpc')
      t.match(request?.text, `"data":{"n":${LONG_NUMBER}}`)
      t.match(request?.body, { method: 'count', user: '42', transport: 'websocket', protocol: codec, encoding: 'json' })
    })

    t.test(`a ${codec} client receives a result without data, null, an error and a disconnect`, async (t) => {
      const client = await connectedWithToken(t, codec, edge.url)
      const outcomes: unknown[] = []
      for (const answer of [
        { result: {} },
        {},
        { result: { data: null } },
        { error: { code: 1000, message: 'no stock', temporary: true } },
        { error: { code: 404, message: 'unknown item' } }
      ]) {
        backend.on('rpc', answer)
        const { rpc, error } = await client.request({ id: 2, rpc: { method: 'buy' } })
        outcomes.push(rpc ?? error)
      }
      backend.on('rpc', { disconnect: { code: 4501, reason: 'account closed' } })
      client.send({ id: 3, rpc: { method: 'buy' } })

      t.same(outcomes, [
        {},
        {},
        { data: null },
        { code: 1000, message: 'no stock', temporary: true },
        { code: 404, message: 'unknown item' }
      ])
      t.equal(await client.closed, '4501 account closed')
    })
  }

  t.test('the text before the first colon of a method selects its namespace', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    const codes = []
    for (const method of ['plain', '', 'admin:a:b', 'closed:a', 'unknown:a', ':a']) {
      const { rpc, error } = await client.request({ id: 2, rpc: { method } })
      codes.push([method, rpc === undefined ? error?.code : 'called'])
    }
    t.same(codes, [
      ['plain', 'called'],
      ['', 'called'],
      ['admin:a:b', 'called'],
      ['closed:a', 108],
      ['unknown:a', 104],
      [':a', 104]
    ])
    t.same(
      backend.of('rpc').map(({ body }) => body.method ?? 'left out'),
      ['plain', 'left out', 'admin:a:b']
    )
  })

  t.test('calls of one client run at the same time up to client.concurrency', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    const held = backend.hold('rpc')
    for (const id of [2, 3, 4, 5, 6]) client.send({ id, rpc: { method: `m${id}` } })
    for (let arrived = 0; arrived < 4; arrived++) await held.next()
    t.equal(backend.of('rpc').length, 4)
    held.release({ result: {} })
    const ids = []
    for (let replies = 0; replies < 5; replies++) ids.push((await client.next()).id)
    t.same(ids.sort(), [2, 3, 4, 5, 6])
  })

  t.test('a client answers pings and receives publications while a call waits', async (t) => {
    const own = await startRelay(t, proxiedFile(backend))
    const client = await connectedWithToken(t, 'json', own.url)
    await client.request({ id: 2, subscribe: { channel: 'open:a' } })
    const held = backend.hold('rpc')
    client.send({ id: 3, rpc: { method: 'slow' } })
    await held.next()
    own.advance(26_000)
    t.same(await client.next(), {})
    client.send({})
    await own.publish('open:a', { n: 1 })
    t.match(await client.next(), { push: { pub: { data: { n: 1 } } } })
    // Without the pong the connection would be closed.
    own.advance(9000)
    held.release({ result: { data: 'late' } })
    t.match(await client.next(), { id: 3, rpc: { data: 'late' } })
  })

  t.test('a client that leaves aborts its call', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    backend.on('rpc', HANG)
    const arrived = backend.next('rpc')
    client.send({ id: 2, rpc: { method: 'slow' } })
    const request = await arrived
    client.ws.terminate()
    await eventually(() => request.isAborted, { label: 'the request is aborted' })
  })

  t.test('malformed calls are rejected without a request', async (t) => {
    for (const [text, outcome] of [
      ['{"id":2,"rpc":{"method":5}}', '3501 bad request'],
      ['{"id":2,"rpc":[]}', '3501 bad request'],
      ['{"id":2,"rpc":{"method":"a","data":1,"data":2}}', 107],
      ['{"id":2,"rpc":{"method":"a","data":1},"rpc":{"method":"a","data":2}}', 107]
    ] as const) {
      const client = await connectedWithToken(t, 'json', edge.url)
      client.ws.send(text)
      const result = await Promise.race([client.closed, client.next().then(({ error }) => error?.code)])
      t.equal(result, outcome, text)
    }
    t.same(backend.of('rpc'), [])
  })

  t.test('data that does not fit into the queue of the client is error 106', async (t) => {
    const small = await startRelay(t, proxiedFile(backend, {}, { queue_max_size: 65_536 }))
    const client = await connectedWithToken(t, 'json', small.url)
    backend.on('rpc', { result: { data: 'x'.repeat(70_000) } })
    t.match(await client.request({ id: 2, rpc: { method: 'a' } }), { error: { code: 106 } })
    backend.on('rpc', { result: { data: 'x'.repeat(7_000) } })
    t.match(await client.request({ id: 3, rpc: { method: 'a' } }), { rpc: { data: String } })
  })

  for (const transport of TRANSPORTS) {
    t.test(`the official client calls the backend over ${transport}`, async (t) => {
      backend.on('rpc', ({ body }) => ({ result: { data: { doubled: Number(body.data) * 2 } } }))
      const client = await connectClient(officialClient(t, edge, transport))
      t.same(await client.rpc('double', 21), { data: { doubled: 42 } })
      backend.on('rpc', { error: { code: 1234, message: 'refused' } })
      await t.rejects(client.rpc('double', 1), { code: 1234, message: 'refused' })
      t.match(backend.requests.at(-1)?.body, { transport, user: '42' })
    })
  }

  t.test('the official client calls the backend with bytes', async (t) => {
    const binary = await startRelay(t, proxiedFile(backend, { binary_encoding: true }))
    const bytes = Buffer.from([0, 1, 255])
    backend.on('rpc', ({ body }) => ({ result: { b64data: body.b64data } }))
    const client = await connectClient(officialProtobufClient(t, binary, 'websocket'))
    const { data } = await client.rpc('echo', bytes)
    t.same(Buffer.from(data), bytes)
    const json = await connectedWithToken(t, 'json', binary.url)
    backend.on('rpc', { result: { b64data: bytes.toString('base64') } })
    t.match(await json.request({ id: 2, rpc: { method: 'a', data: '1' } }), { error: { code: 100 } })
  })
})

t.test('without a proxy every call is error 108', async (t) => {
  const edge = await startRelay(t, { rpc: { namespaces: [{ name: 'admin' }] } })
  const client = await connectedWithToken(t, 'json', edge.url)
  for (const method of ['a', 'admin:a', 'unknown:a'])
    t.match(await client.request({ id: 2, rpc: { method } }), { error: { code: 108 } }, method)
})

t.test('rpc.ping is a method that the relay itself responds to', async (t) => {
  const backend = await startEventBackend(t)
  const file = proxiedFile(backend)
  const rpc = { without_namespace: { proxy_enabled: true }, proxy: { endpoint: backend.endpoint('rpc') } }
  const edge = await startRelay(t, { ...file, rpc: { ...rpc, ping: { enabled: true, method: 'admin:alive' } } })
  for (const codec of CODECS) {
    const client = await connectedWithToken(t, codec, edge.url)
    const reply = await client.request({ id: 2, rpc: { method: 'admin:alive', data: '1' } })
    t.match(reply, { id: 2, rpc: { data: undefined }, error: undefined })
    t.same(backend.requests, [])
    await client.request({ id: 3, rpc: { method: 'ping' } })
    t.equal(backend.of('rpc').length, 1, 'another method')
    backend.reset()
  }
  const client = await connectClient(officialClient(t, edge, 'websocket'))
  t.same(await client.rpc('admin:alive', {}), { data: undefined })
})
