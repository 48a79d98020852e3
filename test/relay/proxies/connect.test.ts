import t from 'tap'
import { type Answer, HANG, RawAnswer, RESET, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import type { Json } from '../../helper/raw-client.js'
import {
  connectClient,
  event,
  officialClient,
  officialProtobufClient,
  startRelay,
  TRANSPORTS
} from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import { CODECS, inSeconds, openCodecClient, proxiedFile } from './fixture.js'

t.test('connect', async (t) => {
  const backend = await startEventBackend(t)
  const edge = await startRelay(
    t,
    proxiedFile(
      backend,
      { http_headers: ['Cookie', 'X-Trace'], emulated_headers: ['Authorization'], include_connection_meta: true },
      { subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'open' } }
    )
  )
  t.beforeEach(() => backend.reset())

  for (const codec of CODECS) {
    t.test(`a ${codec} client is connected with the result of the backend`, async (t) => {
      const expireAt = inSeconds(1000)
      backend.on(
        'connect',
        () =>
          new RawAnswer(
            200,
            `{"result": {"user": "7", "expire_at": ${expireAt}, "info": {"name": "Ada"}, "data": {"n":\n12345678901234567890},
              "channels": ["open:all"], "meta": {"tenant": 1}}}`
          )
      )
      const client = await openCodecClient(t, codec, edge.url)
      const { connect } = await client.request({
        id: 1,
        connect: { data: '{"n":12345678901234567890}', name: 'app', version: '1.2', subs: { 'room:1': {} } }
      })

      t.match(connect, { client: String, expires: true, data: { n: Number }, subs: { 'open:all': {}, 'open:#7': {} } })
      t.ok(Number(connect?.ttl) > 900)
      t.match(client.received(), '12345678901234567890')
      t.notMatch(client.received(), 'tenant')
      const [request] = backend.of('connect')
      t.match(request?.text, '"data":{"n":12345678901234567890}')
      t.match(request?.body, {
        client: connect?.client,
        transport: 'websocket',
        protocol: codec,
        encoding: 'json',
        name: 'app',
        version: '1.2',
        channels: ['room:1']
      })
      t.notOk('user' in (request?.body ?? {}))
      await client.request({ id: 2, rpc: { method: 'a' } })
      t.match(backend.of('rpc')[0]?.body, { user: '7', client: connect?.client, meta: { tenant: 1 } })
      await client.request({ id: 3, subscribe: { channel: 'open:a' } })
      client.send({ id: 4, publish: { channel: 'open:a', data: '1' } })
      const [push] = [await client.next(), await client.next()].filter((each) => each.push !== undefined)
      t.match(push?.push?.pub?.info, { user: '7', conn_info: { name: 'Ada' } })
    })

    t.test(`a ${codec} client that the backend refuses receives the error, and nothing after it`, async (t) => {
      backend.on('connect', { error: { code: 1401, message: 'sign in first' } })
      const client = await openCodecClient(t, codec, edge.url)
      client.send({ id: 1, connect: {} }, { id: 2, rpc: { method: 'a' } })
      t.match(await client.next(), { id: 1, error: { code: 1401, message: 'sign in first' } })
      client.send({ id: 3, rpc: { method: 'a' } })
      edge.advance(11_000)
      t.equal(await client.closed, '3502 stale')
      t.same(backend.of('rpc'), [])
    })
  }

  t.test('a token, also an invalid one, is judged without the backend', async (t) => {
    const cases: readonly (readonly [token: string, outcome: unknown])[] = [
      [relayToken({ sub: '1' }), 0],
      [relayToken({ sub: '1' }, { nowMs: Date.now() - 7_200_000 }), 109],
      ['a.b.c', '3500 invalid token']
    ]
    for (const [token, outcome] of cases) {
      const client = await openCodecClient(t, 'json', edge.url)
      client.send({ id: 1, connect: { token } })
      t.equal(await Promise.race([client.closed, client.next().then(({ error }) => error?.code ?? 0)]), outcome)
    }
    t.same(backend.requests, [])
  })

  t.test('the meta claim of a token is sent with later events', async (t) => {
    const client = await openCodecClient(t, 'json', edge.url)
    await client.request({ id: 1, connect: { token: relayToken({ sub: '1', meta: { plan: 'pro' } }) } })
    await client.request({ id: 2, rpc: { method: 'a' } })
    t.same(backend.of('rpc')[0]?.body.meta, { plan: 'pro' })
  })

  t.test('commands after connect wait for the backend, in order', async (t) => {
    const held = backend.hold('connect')
    const client = await openCodecClient(t, 'json', edge.url)
    client.send({ id: 1, connect: {} }, { id: 2, rpc: { method: 'a' } })
    client.send({ id: 3, subscribe: { channel: 'open:a' } })
    await held.next()
    t.same(backend.of('rpc'), [])
    held.release({ result: { user: '7' } })
    t.same(
      [await client.next(), await client.next(), await client.next()].map(({ id }) => id),
      [1, 2, 3]
    )
  })

  t.test('a slow backend ends in 3502, and its late answer is ignored', async (t) => {
    const held = backend.hold('connect')
    const client = await openCodecClient(t, 'json', edge.url)
    client.send({ id: 1, connect: {} })
    const request = await held.next()
    edge.advance(11_000)
    t.equal(await client.closed, '3502 stale')
    await eventually(() => request.isAborted, { label: 'the request is aborted' })
    held.release({ result: { user: '7', channels: ['open:ghost'] } })
    backend.on('connect', { result: { user: '7' } })
    await (await openCodecClient(t, 'json', edge.url)).request({ id: 1, connect: {} })
    t.equal(edge.relay.openChannels.has('open:ghost'), false)
  })

  t.test('a client that leaves aborts the call', async (t) => {
    const held = backend.hold('connect')
    const client = await openCodecClient(t, 'json', edge.url)
    client.send({ id: 1, connect: {} })
    const request = await held.next()
    client.ws.terminate()
    await eventually(() => request.isAborted, { label: 'the request is aborted' })
  })

  t.test('these results connect the client or refuse it', async (t) => {
    const cases: readonly (readonly [title: string, answer: Answer, outcome: unknown])[] = [
      ['an anonymous user', { result: {} }, ''],
      ['a user', { result: { user: 'u' } }, 'u'],
      ['no result', {}, '3501 bad request'],
      ['null', new RawAnswer(200, 'null'), '3501 bad request'],
      ['an expiry in the past', { result: { user: 'u', expire_at: inSeconds(-5) } }, 110],
      ['no expiry', { result: { user: 'u', expire_at: 0 } }, 'u'],
      ['an unknown namespace', { result: { user: 'u', channels: ['none:1'] } }, 102],
      ['a private and a limited channel', { result: { user: 'u', channels: ['$room:1', 'room:2#9'] } }, 'u'],
      [
        'too many channels',
        { result: { channels: Array.from({ length: 129 }, (_, n) => `open:${n}`) } },
        '3505 channel limit'
      ],
      ['a disconnect', { disconnect: { code: 4501, reason: 'banned' } }, '4501 banned'],
      ['both an error and a result', { error: { code: 1000, message: 'e' }, result: { user: 'u' } }, 1000],
      ['a user of another type', { result: { user: 56 } }, 100],
      ['status 500', new RawAnswer(500, '{"result":{"user":"u"}}'), 100],
      ['a redirect', new RawAnswer(302, '', { location: backend.endpoint('rpc') }), 100],
      ['a login page', new RawAnswer(200, '<html>'), 100],
      ['a closed connection', RESET, 100]
    ]
    for (const [title, answer, outcome] of cases) {
      backend.on('connect', answer)
      const client = await openCodecClient(t, 'json', edge.url)
      client.send({ id: 1, connect: {} })
      const refused = client.closed
      const reply = await Promise.race([refused, client.next()])
      if (typeof reply === 'string') t.equal(reply, outcome, title)
      else if (reply.error !== undefined) t.equal(reply.error.code, outcome, title)
      else {
        await client.request({ id: 2, rpc: { method: 'a' } })
        t.equal(backend.of('rpc').at(-1)?.body.user, outcome, title)
      }
    }
  })

  t.test('no result connects an anonymous user if connections without a token are allowed', async (t) => {
    const open = await startRelay(t, proxiedFile(backend, {}, { allow_anonymous_connect_without_token: true }))
    backend.on('connect', {})
    const client = await openCodecClient(t, 'json', open.url)
    t.match(await client.request({ id: 1, connect: {} }), { connect: {} })
    backend.on('connect', RESET)
    const other = await openCodecClient(t, 'json', open.url)
    t.match(await other.request({ id: 1, connect: {} }), { error: { code: 100 } }, 'a failed call lets nobody in')
  })

  t.test('server-side subscriptions have the options of the backend and recover', async (t) => {
    const position = await edge.publish('room:1', 1)
    await edge.publish('room:1', 2)
    backend.on('connect', {
      result: {
        user: '7',
        subs: {
          'room:1': { data: { role: 'owner' }, info: { seat: 3 }, override: { force_recovery: { value: true } } }
        }
      }
    })
    const client = await openCodecClient(t, 'json', edge.url)
    const { connect } = await client.request({ id: 1, connect: { subs: { 'room:1': { recover: true, ...position } } } })
    t.match(connect?.subs?.['room:1'], { data: { role: 'owner' }, recovered: true, publications: [{ data: 2 }] })
    t.same(backend.of('subscribe'), [], 'the subscribe proxy is not asked')
    client.send({ id: 2, publish: { channel: 'room:1', data: '3' } })
    const [push] = [await client.next(), await client.next()].filter((each) => each.push !== undefined)
    t.match(push?.push?.pub?.info, { chan_info: { seat: 3 } })
  })

  t.test('only the backend decides about the channels of a client that it has identified', async (t) => {
    const subs = { 'open:dropped': { recover: true, epoch: 'e', offset: 1 }, 'none:1': {} }
    backend.on('connect', { result: { user: '7', channels: ['open:all'] } })
    const client = await openCodecClient(t, 'json', edge.url)
    const { connect } = await client.request({ id: 1, connect: { subs } })
    t.same(Object.keys(connect?.subs ?? {}).sort(), ['open:#7', 'open:all'])
    t.same(backend.of('connect')[0]?.body.channels, ['open:dropped', 'none:1'])

    const withToken = await openCodecClient(t, 'json', edge.url)
    const own = await withToken.request({
      id: 1,
      connect: { token: relayToken({ sub: '7' }), subs: { 'open:dropped': {} } }
    })
    t.same(Object.keys(own.connect?.subs ?? {}).sort(), ['open:#7', 'open:dropped'])
  })

  t.test('an anonymous client that the backend has no result for may name its channels', async (t) => {
    const open = await startRelay(t, proxiedFile(backend, {}, { allow_anonymous_connect_without_token: true }))
    backend.on('connect', {})
    const client = await openCodecClient(t, 'json', open.url)
    client.send({ id: 1, connect: { subs: { 'none:1': {} } } })
    t.equal(await client.closed, '3501 bad request')
  })

  t.test('the limit of connections of a user is checked after the backend', async (t) => {
    const limited = await startRelay(t, proxiedFile(backend, {}, { user_connection_limit: 1 }))
    backend.on('connect', { result: { user: '7' } })
    const first = await openCodecClient(t, 'json', limited.url)
    await first.request({ id: 1, connect: {} })
    const second = await openCodecClient(t, 'json', limited.url)
    second.send({ id: 1, connect: {} })
    t.equal(await second.closed, '3504 connection limit')
    t.equal(backend.of('connect').length, 2)
  })

  t.test('only listed headers are sent, with every event, and emulated ones do not replace real ones', async (t) => {
    backend.on('connect', { result: { user: '7' } })
    // The types of `ws` have no repeated headers.
    const headers = { cookie: ['a=1', 'b=2'], 'x-trace': ['t1', 't2'], 'x-secret': 's', authorization: 'real' }
    const client = await openCodecClient(t, 'json', edge.url, { headers: headers as never })
    const emulated = { AUTHORIZATION: 'Bearer e', cookie: 'forged=1', 'X-Trace': 'forged', 'x-other': '1' }
    await client.request({ id: 1, connect: { headers: emulated } })
    await client.request({ id: 2, rpc: { method: 'a' } })
    await client.request({ id: 3, subscribe: { channel: 'room:1' } })
    for (const { event: name, headersDistinct: sent } of backend.requests) {
      t.match(sent.cookie?.join('; '), /^a=1; b=2$/, `${name}: cookie`)
      t.match(sent['x-trace']?.join(', '), /^t1, t2$/, `${name}: repeated header`)
      t.same(sent.authorization, ['Bearer e'], `${name}: emulated header`)
      t.notOk('x-secret' in sent || 'x-other' in sent, `${name}: other headers`)
    }
    t.equal(backend.requests.length, 3)
  })

  t.test('a protobuf client sends emulated headers', async (t) => {
    backend.on('connect', { result: { user: '7' } })
    const client = await openCodecClient(t, 'protobuf', edge.url)
    await client.request({ id: 1, connect: { headers: { authorization: 'Bearer p' } } })
    t.equal(backend.of('connect')[0]?.headers.authorization, 'Bearer p')
  })

  t.test('malformed connect commands are refused without a request', async (t) => {
    const cases: readonly Json[] = [{ headers: [] }, { headers: { a: 1 } }, { headers: 'x' }]
    for (const connect of cases) {
      const client = await openCodecClient(t, 'json', edge.url)
      client.send({ id: 1, connect })
      t.equal(await client.closed, '3501 bad request')
    }
    const client = await openCodecClient(t, 'json', edge.url)
    client.ws.send('{"id":1,"connect":{"data":1,"data":2}}')
    t.match(await client.next(), { error: { code: 107 } })
    t.same(backend.requests, [])
  })

  t.test('a header value with a line break never reaches the backend', async (t) => {
    const client = await openCodecClient(t, 'json', edge.url)
    const headers = { authorization: 'a\r\nX-Admin: 1' }
    t.match(await client.request({ id: 1, connect: { headers } }), { error: { code: 100 } })
    t.same(backend.requests, [])
  })

  for (const transport of TRANSPORTS) {
    t.test(`the official client connects over ${transport} without a token`, async (t) => {
      backend.on('connect', { result: { user: '7', data: { hello: 1 } } })
      const client = officialClient(t, edge, transport, {
        getToken: null,
        data: { device: 'd1' },
        headers: { Authorization: 'Bearer 1' }
      })
      const connected = event(client, 'connected')
      client.connect()
      t.match(await connected, { data: { hello: 1 }, transport })
      await client.rpc('a', 1)
      const [first, second] = backend.requests
      t.match(first?.body, { transport, data: { device: 'd1' } })
      t.match(second?.body, { transport, user: '7', client: first?.body.client })
      for (const { headers } of backend.requests) t.equal(headers.authorization, 'Bearer 1')
    })
  }

  t.test('the official protobuf client connects without a token', async (t) => {
    backend.on('connect', { result: { user: '7', data: { hello: 1 } } })
    const client = officialProtobufClient(t, edge, 'websocket', { getToken: null, data: Buffer.from('{"device":1}') })
    const connected = event<{ data: Uint8Array }>(client, 'connected')
    client.connect()
    t.equal(Buffer.from((await connected).data).toString(), '{"hello":1}')
    t.match(backend.of('connect')[0]?.body, { protocol: 'protobuf', data: { device: 1 } })
  })

  t.test('the official client stops after a disconnect that says so', async (t) => {
    backend.on('connect', { disconnect: { code: 4500, reason: 'no account' } })
    const client = officialClient(t, edge, 'websocket', { getToken: null })
    const ended = event(client, 'disconnected')
    client.connect()
    t.match(await ended, { code: 4500, reason: 'no account' })
  })

  t.test('the official client connects once the backend is back', async (t) => {
    backend.on('connect', HANG)
    const hasty = await startRelay(t, proxiedFile(backend, { timeout: '100ms' }))
    const client = officialClient(t, hasty, 'websocket', { getToken: null })
    const failed = event(client, 'error')
    const connected = connectClient(client)
    await failed
    backend.on('connect', { result: { user: '7' } })
    await connected
    t.equal(client.state, 'connected')
  })
})
