import t from 'tap'
import { type Answer, HANG, RawAnswer, RESET, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import type { Json } from '../../helper/raw-client.js'
import { connectClient, event, officialClient, startRelay, subscribeTo } from '../../helper/relay.js'
import { configOf, relayToken } from '../../helper/relay-rules.js'
import { CODECS, connectedWithToken, inSeconds, openCodecClient, proxiedFile } from './fixture.js'

const EXPIRED_TOKEN = relayToken({ sub: '42', channel: 'room:t' }, { nowMs: Date.now() - 7_200_000 })

t.test('subscribe', async (t) => {
  const backend = await startEventBackend(t)
  const edge = await startRelay(t, proxiedFile(backend, {}, { channel_limit: 3, concurrency: 4 }))
  const subscribers = (channel: string): number => edge.relay.openChannels.get(channel)?.size ?? 0
  t.beforeEach(() => backend.reset())

  for (const codec of CODECS) {
    t.test(`a ${codec} client subscribes with the result of the backend`, async (t) => {
      const client = await connectedWithToken(t, codec, edge.url, { sub: '42', info: { name: 'Ada' } })
      backend.on(
        'subscribe',
        () => new RawAnswer(200, '{"result":{"data":{"n": 12345678901234567890},"info":{"r":1}}}')
      )

      const reply = await client.request({
        id: 2,
        subscribe: { channel: 'room:1', data: '{"n":12345678901234567890}' }
      })

      t.match(reply, { id: 2, subscribe: { data: { n: Number } } })
      t.match(client.received(), '{"n": 12345678901234567890}')
      const [request] = backend.of('subscribe')
      t.match(request?.text, '"data":{"n":12345678901234567890}')
      t.match(request?.body, { user: '42', channel: 'room:1', transport: 'websocket', protocol: codec, client: String })
      backend.on('publish', {})
      client.send({ id: 3, publish: { channel: 'room:1', data: '1' } })
      const [push] = [await client.next(), await client.next()].filter((each) => each.push !== undefined)
      t.match(push?.push?.pub?.info, { user: '42', conn_info: { name: 'Ada' }, chan_info: { r: 1 } })
    })

    t.test(`a ${codec} client receives the error or the disconnect of the backend`, async (t) => {
      const client = await connectedWithToken(t, codec, edge.url)
      backend.on('subscribe', { error: { code: 403, message: 'not a member' } })
      t.match(await client.request({ id: 2, subscribe: { channel: 'room:1' } }), {
        error: { code: 403, message: 'not a member' }
      })
      t.equal(subscribers('room:1'), 0)
      backend.on('subscribe', {})
      t.match(await client.request({ id: 3, subscribe: { channel: 'room:1' } }), { subscribe: {} }, 'after a refusal')
      backend.on('subscribe', { disconnect: { code: 4100, reason: 'come back' } })
      client.send({ id: 4, subscribe: { channel: 'room:2' } })
      t.equal(await client.closed, '4100 come back')
    })
  }

  t.test('these subscribe commands are decided without the backend', async (t) => {
    const subscriptionToken = (claims: Json): string => relayToken({ sub: '42', channel: 'room:t', ...claims })
    const cases: readonly (readonly [title: string, subscribe: Json, outcome: number | string | undefined])[] = [
      ['a channel with a long name', { channel: `room:${'x'.repeat(300)}` }, 107],
      ['an unknown namespace', { channel: 'none:1' }, 102],
      ['an invalid name', { channel: 'room:é' }, 107],
      ['another type', { channel: 'room:1', type: 1 }, 103],
      ['an invalid filter', { channel: 'room:1', tf: { op: 'other' } }, 107],
      ['a private channel without a token', { channel: '$room:1' }, 103],
      ['a token', { channel: 'room:t', token: subscriptionToken({}) }, undefined],
      ['an expired token', { channel: 'room:t', token: EXPIRED_TOKEN }, 109],
      ['an invalid token', { channel: 'room:t', token: 'a.b.c' }, 103],
      ['a token of another user', { channel: 'room:t', token: subscriptionToken({ sub: '43' }) }, '3500 invalid token'],
      ['a channel for this user', { channel: 'room:1#42' }, undefined],
      ['a channel for another user', { channel: 'room:1#43' }, 103],
      ['no channel', {}, '3501 bad request']
    ]
    for (const [title, subscribe, outcome] of cases) {
      const client = await connectedWithToken(t, 'json', edge.url)
      client.send({ id: 2, subscribe })
      const result = await Promise.race([client.closed, client.next().then(({ error }) => error?.code)])
      t.equal(result, outcome, title)
    }
    t.same(backend.requests, [])
  })

  t.test('permissions of the namespace do not matter if the backend decides', async (t) => {
    const open = await startRelay(t, {
      channel: {
        proxy: { subscribe: { endpoint: backend.endpoint('subscribe') } },
        without_namespace: { subscribe_proxy_enabled: true, allow_subscribe_for_client: true }
      }
    })
    const client = await connectedWithToken(t, 'json', open.url)
    backend.on('subscribe', { error: { code: 403, message: 'no' } })
    t.match(await client.request({ id: 2, subscribe: { channel: 'plain' } }), { error: { code: 403 } })
  })

  t.test('a channel in the connect command is skipped if the backend protects it', async (t) => {
    const client = await openCodecClient(t, 'json', edge.url)
    const connect = { token: relayToken({ sub: '42' }), subs: { 'room:1': {}, 'open:1': {}, 'room:1#42': {} } }
    const { connect: result } = await client.request({ id: 1, connect })
    t.same(Object.keys(result?.subs ?? {}).sort(), ['open:1', 'room:1#42'])
    t.same(backend.requests, [])
  })

  t.test('the channel limit and a second subscription are checked before and after the backend', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    const held = backend.hold('subscribe')
    for (const [index, channel] of ['room:1', 'room:2', 'room:3', 'room:4'].entries())
      client.send({ id: index + 2, subscribe: { channel } })
    for (let arrived = 0; arrived < 4; arrived++) await held.next()
    held.release({})
    const codes = []
    for (let replies = 0; replies < 4; replies++) codes.push((await client.next()).error?.code ?? 0)
    t.same(codes.sort(), [0, 0, 0, 106])
    backend.requests.length = 0
    t.match(await client.request({ id: 7, subscribe: { channel: 'room:9' } }), { error: { code: 106 } })
    t.match(await client.request({ id: 6, subscribe: { channel: 'room:1' } }), { error: { code: 105 } })
    t.same(backend.requests, [], 'nothing is asked that is refused anyway')
  })

  t.test('a subscription that the API makes while the backend is asked is kept', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    const held = backend.hold('subscribe')
    client.send({ id: 2, subscribe: { channel: 'room:1' } })
    await held.next()
    await edge.api('subscribe', { channel: 'room:1', user: '42' })
    t.match(await client.next(), { push: { channel: 'room:1', subscribe: {} } })
    held.release({})
    t.match(await client.next(), { id: 2, error: { code: 105 } })
    await edge.publish('room:1', 'x')
    t.match(await client.next(), { push: { pub: { data: 'x' } } })
  })

  t.test('of two subscribe commands for one channel the second is error 105', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    client.send({ id: 2, subscribe: { channel: 'room:1' } }, { id: 3, subscribe: { channel: 'room:1' } })
    t.match(await client.next(), { id: 2, subscribe: {} })
    t.match(await client.next(), { id: 3, error: { code: 105 } })
    t.equal(backend.of('subscribe').length, 1)
  })

  t.test('each attempt to subscribe asks again, and its answer does not count for another attempt', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    const held = backend.hold('subscribe')
    client.send({ id: 2, subscribe: { channel: 'room:1' } })
    client.send({ id: 3, unsubscribe: { channel: 'room:1' } })
    client.send({ id: 4, subscribe: { channel: 'room:1' } })
    await held.next()
    backend.on('subscribe', { error: { code: 403, message: 'no' } })
    held.release({ result: { data: 'first' } })
    t.match(await client.next(), { id: 2, subscribe: { data: 'first' } })
    t.match(await client.next(), { id: 3 })
    t.match(await client.next(), { id: 4, error: { code: 403 } })
    t.equal(subscribers('room:1'), 0)
  })

  t.test('a client that leaves aborts the call, and no subscription remains', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    const held = backend.hold('subscribe')
    client.send({ id: 2, subscribe: { channel: 'room:gone' } })
    const request = await held.next()
    client.ws.terminate()
    await eventually(() => request.isAborted, { label: 'the request is aborted' })
    held.release({})
    const other = await connectedWithToken(t, 'json', edge.url)
    t.match(await other.request({ id: 2, subscribe: { channel: 'room:other' } }), { subscribe: {} })
    t.equal(edge.relay.openChannels.has('room:gone'), false)
  })

  t.test('publications of the time after the answer of the backend are recovered', async (t) => {
    const before = await edge.publish('room:rec', 1)
    await edge.publish('room:rec', 2)
    const client = await connectedWithToken(t, 'json', edge.url)
    const held = backend.hold('subscribe')
    client.send({ id: 2, subscribe: { channel: 'room:rec', recover: true, recoverable: true, ...before } })
    await held.next()
    await edge.publish('room:rec', 3)
    held.release({})
    const { subscribe } = await client.next()
    t.same(
      subscribe?.publications?.map(({ data }) => data),
      [2, 3]
    )
    t.match(subscribe, { recovered: true, was_recovering: true })
  })

  t.test('an override changes the options of the subscription', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    backend.on('subscribe', {
      result: { override: { force_recovery: { value: true }, presence: { value: true } } }
    })
    t.match(await client.request({ id: 2, subscribe: { channel: 'room:1' } }), {
      subscribe: { recoverable: true, positioned: true, epoch: String }
    })
    backend.on('subscribe', { result: { override: { force_positioning: { value: true } } } })
    const { subscribe } = await client.request({ id: 3, subscribe: { channel: 'lease:1' } })
    t.match(subscribe, { positioned: true, epoch: /./ }, 'without a history too')
  })

  t.test('the expiry of the result is announced, and one in the past is error 110', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    backend.on('subscribe', { result: { expire_at: inSeconds(100) } })
    const { subscribe } = await client.request({ id: 2, subscribe: { channel: 'room:1' } })
    t.match(subscribe, { expires: true, ttl: Number })
    backend.on('subscribe', { result: { expire_at: inSeconds(-1) } })
    t.match(await client.request({ id: 3, subscribe: { channel: 'room:2' } }), { error: { code: 110 } })
  })

  t.test('every failure of the backend refuses the subscription with error 100', async (t) => {
    const hasty = await startRelay(t, proxiedFile(backend, { timeout: '200ms', http: { max_response_size: 1000 } }))
    const client = await connectedWithToken(t, 'json', hasty.url)
    const answers: readonly Answer[] = [
      new RawAnswer(500, '{"result":{}}'),
      new RawAnswer(302, '', { location: backend.endpoint('other') }),
      new RawAnswer(200, '<html>login</html>'),
      new RawAnswer(200, ''),
      new RawAnswer(200, '[]'),
      new RawAnswer(200, `{"result":{"data":"${'x'.repeat(2000)}"}}`),
      { result: { info: {}, expire_at: 'soon' } },
      { result: { b64data: '###' } },
      RESET,
      HANG
    ]
    for (const [index, answer] of answers.entries()) {
      backend.on('subscribe', answer)
      const reply = await client.request({ id: index + 2, subscribe: { channel: 'room:1' } })
      t.match(reply, { error: { code: 100, temporary: true } }, JSON.stringify(answer))
    }
    t.same(backend.of('other'), [], 'no redirect is followed')
    backend.on('subscribe', { result: { user: '43', client: 'other', channel: 'room:9' } })
    t.match(await client.request({ id: 99, subscribe: { channel: 'room:1' } }), { subscribe: {} })
    const { body } = await hasty.api('channels', {})
    t.same(Object.keys(JSON.parse(body).result.channels), ['room:1'], 'the answer cannot name another channel or user')
  })

  t.test('the official client resubscribes after an error that is temporary', async (t) => {
    backend.on('subscribe', new RawAnswer(500))
    const client = await connectClient(officialClient(t, edge, 'websocket'))
    const subscription = client.newSubscription('room:1', { minResubscribeDelay: 1, maxResubscribeDelay: 10 })
    const failed = event(subscription, 'error')
    const subscribed = event(subscription, 'subscribed')
    subscription.subscribe()
    await failed
    backend.on('subscribe', { result: { data: { role: 'member' } } })
    t.match(await subscribed, { data: { role: 'member' } })
  })

  t.test('the official client stops after an error that is not temporary', async (t) => {
    backend.on('subscribe', { error: { code: 403, message: 'not a member' } })
    const client = await connectClient(officialClient(t, edge, 'websocket'))
    const subscription = client.newSubscription('room:1')
    const ended = event(subscription, 'unsubscribed')
    subscription.subscribe()
    t.match(await ended, { code: 403, reason: 'not a member' })
  })

  t.test('a JSON client on a channel with binary data is refused without a request', async (t) => {
    const own = await startRelay(t, {
      channel: {
        proxy: { subscribe: { endpoint: backend.endpoint('subscribe') } },
        namespaces: [{ name: 'bytes', subscribe_proxy_enabled: true, publication_data_format: 'binary' }]
      }
    })
    const client = await connectedWithToken(t, 'json', own.url)
    t.match(await client.request({ id: 2, subscribe: { channel: 'bytes:1' } }), { error: { code: 108 } })
    t.same(backend.requests, [])
  })

  t.test('a reload while the backend is asked counts for the subscription', async (t) => {
    const own = await startRelay(t, proxiedFile(backend))
    const client = await connectedWithToken(t, 'json', own.url)
    const held = backend.hold('subscribe')
    client.send({ id: 2, subscribe: { channel: 'room:1' } })
    await held.next()
    own.running.configure(configOf({ channel: { namespaces: [] } }))
    held.release({})
    t.match(await client.next(), { id: 2, error: { code: 102 } })
  })

  t.test('a reload adds and removes the proxy of a namespace', async (t) => {
    const own = await startRelay(t, { channel: { namespaces: [{ name: 'room', allow_subscribe_for_client: true }] } })
    const client = await connectClient(officialClient(t, own, 'websocket'))
    await subscribeTo(client, 'room:1')
    t.same(backend.requests, [])
    own.running.configure(configOf(proxiedFile(backend)))
    await subscribeTo(client, 'room:2')
    t.equal(backend.of('subscribe').length, 1)
  })
})

for (const codec of CODECS) {
  t.test(`the backend decides once about a ${codec} client that loads a map in pages`, async (t) => {
    const backend = await startEventBackend(t)
    const file = proxiedFile(backend)
    const map = { mode: 'recoverable', key_ttl: '1h', default_page_size: 2, min_page_size: 1 }
    const namespace = { name: 'fleet', subscription_type: 'map', map, subscribe_proxy_enabled: true }
    const channel = { ...(file.channel as Json), namespaces: [namespace] }
    const edge = await startRelay(t, { ...file, channel })
    for (const key of ['a', 'b', 'c']) await edge.api('map_publish', { channel: 'fleet:1', key, data: 1 })
    const client = await connectedWithToken(t, codec, edge.url)
    const page = { channel: 'fleet:1', type: 1, phase: 2 }

    backend.on('subscribe', { error: { code: 403, message: 'not a member' } })
    t.match(await client.request({ id: 2, subscribe: page }), { error: { code: 403 } })
    backend.on('subscribe', { result: { data: { role: 'driver' }, expire_at: inSeconds(100) } })
    const first = await client.request({ id: 3, subscribe: { ...page, data: '{"hello":1}' } })
    t.match(first, { subscribe: { phase: 2, cursor: 'b' } })
    t.match(await client.request({ id: 4, subscribe: { ...page, cursor: 'b' } }), {
      subscribe: { state: [{ key: 'c' }], expires: true, data: { role: 'driver' } }
    })
    t.equal(backend.of('subscribe').length, 2)
    t.match(backend.of('subscribe')[1]?.body, { channel: 'fleet:1', data: { hello: 1 } })

    backend.on('connect', { result: { user: '42', channels: ['fleet:1'] } })
    const other = await openCodecClient(t, codec, edge.url)
    t.match(await other.request({ id: 1, connect: {} }), { error: { code: 107 } }, 'never a server-side subscription')
  })
}
