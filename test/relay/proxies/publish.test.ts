import t from 'tap'
import { type Answer, HANG, RawAnswer, RESET, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import type { Json } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { CODECS, connectedWithToken, openCodecClient, proxiedFile } from './fixture.js'

t.test('publish', async (t) => {
  const backend = await startEventBackend(t)
  const edge = await startRelay(t, proxiedFile(backend))
  t.beforeEach(() => backend.reset())

  const history = async (channel: string): Promise<readonly Json[]> => {
    const { body } = await edge.api('history', { channel, limit: 20 })
    return JSON.parse(body).result.publications
  }

  for (const codec of CODECS) {
    t.test(`the backend is asked about a publication of a ${codec} client, which need not be subscribed`, async (t) => {
      const channel = `room:${codec}`
      const client = await connectedWithToken(t, codec, edge.url, { sub: '42', info: { name: 'Ada' } })
      const reply = await client.request({ id: 2, publish: { channel, data: '{"n":12345678901234567890}' } })
      t.match(reply, { id: 2, publish: {} })
      const [request] = backend.of('publish')
      t.match(request?.text, '"data":{"n":12345678901234567890}')
      t.match(request?.body, { user: '42', channel, protocol: codec })
      const { body } = await edge.api('history', { channel, limit: 1 })
      t.match(body, '"data":{"n":12345678901234567890}')
      t.match((await history(channel))[0]?.info, { user: '42', conn_info: { name: 'Ada' } })
    })

    t.test(`a ${codec} client receives the error or the disconnect of the backend`, async (t) => {
      const channel = `room:refused-${codec}`
      const client = await connectedWithToken(t, codec, edge.url)
      backend.on('publish', { error: { code: 1001, message: 'muted' } })
      t.match(await client.request({ id: 2, publish: { channel, data: '1' } }), {
        error: { code: 1001, message: 'muted' }
      })
      backend.on('publish', { disconnect: { code: 4502, reason: 'spam' } })
      client.send({ id: 3, publish: { channel, data: '1' } })
      t.equal(await client.closed, '4502 spam')
      t.same(await history(channel), [])
    })
  }

  t.test('the result changes the publication', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    await client.request({ id: 2, subscribe: { channel: 'room:res' } })
    const publish = async (answer: Answer): Promise<unknown> => {
      backend.on('publish', answer)
      client.send({ id: 3, publish: { channel: 'room:res', data: '{"own":1}' } })
      const messages = [await client.next(), await client.next()]
      return messages.find((each) => each.push !== undefined)?.push?.pub
    }
    t.match(await publish(new RawAnswer(200, '{"result":{"data":{"a":\n1e1}}}')), { data: { a: 10 }, offset: 1 })
    t.match(await publish({ result: { tags: { kind: 'x' } } }), { data: { own: 1 }, tags: { kind: 'x' }, offset: 2 })
    const skipped = await publish({ result: { skip_history: true } })
    t.match(skipped, { data: { own: 1 } })
    t.notOk('offset' in Object(skipped))
    t.match(await publish({ result: { version: 5, idempotency_key: 'once' } }), { version: 5, offset: 3 })
    t.equal((await history('room:res')).length, 3)
  })

  t.test('a publication with a used idempotency key is not sent again', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    backend.on('publish', { result: { idempotency_key: 'k1' } })
    await client.request({ id: 2, publish: { channel: 'room:idem', data: '1' } })
    await client.request({ id: 3, publish: { channel: 'room:idem', data: '2' } })
    t.equal((await history('room:idem')).length, 1)
  })

  t.test('the option delta_publish does not apply, only the delta of the result', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    await client.request({ id: 2, subscribe: { channel: 'room:delta', delta: 'fossil', positioned: true } })
    const text = `"${'a long text that changes little '.repeat(20)}"`
    const deltas = []
    for (const [index, answer] of [{}, {}, { result: { delta: true } }].entries()) {
      backend.on('publish', answer)
      client.send({ id: index + 3, publish: { channel: 'room:delta', data: text.replace('"', `"${index}`) } })
      const messages = [await client.next(), await client.next()]
      deltas.push(messages.find((each) => each.push !== undefined)?.push?.pub?.delta ?? false)
    }
    t.same(deltas, [false, false, true])
  })

  t.test('these publish commands are refused without a request', async (t) => {
    const cases: readonly (readonly [title: string, publish: Json, outcome: unknown])[] = [
      ['an unknown namespace', { channel: 'none:1', data: '1' }, 102],
      ['an invalid name', { channel: 'room:é', data: '1' }, 107],
      ['no data', { channel: 'room:1' }, 107],
      ['no channel', { data: '1' }, '3501 bad request']
    ]
    for (const [title, publish, outcome] of cases) {
      const client = await connectedWithToken(t, 'json', edge.url)
      client.send({ id: 2, publish })
      t.equal(await Promise.race([client.closed, client.next().then(({ error }) => error?.code)]), outcome, title)
    }
    const objects = await startRelay(t, {
      ...proxiedFile(backend),
      channel: {
        proxy: { publish: { endpoint: backend.endpoint('publish') } },
        namespaces: [{ name: 'room', publish_proxy_enabled: true, publication_data_format: 'json_object' }]
      }
    })
    const client = await connectedWithToken(t, 'json', objects.url)
    t.match(await client.request({ id: 2, publish: { channel: 'room:1', data: '[]' } }), { error: { code: 107 } })
    t.same(backend.requests, [])
  })

  t.test('permissions of the namespace do not matter, and API publications are not asked about', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    backend.on('publish', { error: { code: 1001, message: 'muted' } })
    await client.request({ id: 2, subscribe: { channel: 'room:perm' } })
    t.match(await client.request({ id: 3, publish: { channel: 'room:perm', data: '1' } }), { error: { code: 1001 } })
    await edge.publish('room:perm', 'api')
    t.equal(backend.of('publish').length, 1)
  })

  t.test('a failed call publishes nothing and is error 100', async (t) => {
    const hasty = await startRelay(t, proxiedFile(backend, { timeout: '200ms' }))
    const client = await connectedWithToken(t, 'json', hasty.url)
    const answers: readonly Answer[] = [
      new RawAnswer(500),
      new RawAnswer(200, '{'),
      { result: { data: 1, tags: [] } },
      { result: { version: '1' } },
      RESET,
      HANG
    ]
    for (const [index, answer] of answers.entries()) {
      backend.on('publish', answer)
      const reply = await client.request({ id: index + 2, publish: { channel: 'room:1', data: '1' } })
      t.match(reply, { error: { code: 100, temporary: true } })
    }
    const { body } = await hasty.api('history', { channel: 'room:1', limit: 20 })
    t.same(JSON.parse(body).result.publications, [])
  })

  t.test('a client that leaves before the answer publishes nothing', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    const held = backend.hold('publish')
    client.send({ id: 2, publish: { channel: 'room:late', data: '1' } })
    const request = await held.next()
    client.ws.terminate()
    await eventually(() => request.isAborted, { label: 'the request is aborted' })
    held.release({})
    const other = await connectedWithToken(t, 'json', edge.url)
    await other.request({ id: 2, rpc: { method: 'a' } })
    t.same(await history('room:late'), [])
  })

  t.test('bytes of a protobuf client that are not JSON need binary_encoding', async (t) => {
    const file = proxiedFile(backend)
    const namespaces = [{ name: 'bytes', publish_proxy_enabled: true, publication_data_format: 'binary' }]
    const proxied = (binary: boolean) => ({
      ...file,
      channel: {
        proxy: { publish: { endpoint: backend.endpoint('publish'), timeout: '30s', binary_encoding: binary } },
        namespaces: [{ ...namespaces[0], history_size: 5, history_ttl: '60s' }]
      }
    })
    const text = await startRelay(t, proxied(false))
    const refused = await connectedWithToken(t, 'protobuf', text.url)
    t.match(await refused.request({ id: 2, publish: { channel: 'bytes:1', data: '\u0000x' } }), {
      error: { code: 100 }
    })
    t.same(backend.requests, [])
    const binary = await startRelay(t, proxied(true))
    const client = await connectedWithToken(t, 'protobuf', binary.url)
    backend.on('publish', { result: { b64data: Buffer.from([1, 2]).toString('base64') } })
    t.match(await client.request({ id: 2, publish: { channel: 'bytes:1', data: '\u0000x' } }), { publish: {} })
    t.match(backend.of('publish')[0]?.body, { encoding: 'binary', b64data: Buffer.from('\u0000x').toString('base64') })
    backend.on('publish', { result: { data: { text: 1 } } })
    t.match(await client.request({ id: 3, publish: { channel: 'bytes:1', data: 'y' } }), { publish: {} })
    const { body } = await binary.api('history', { channel: 'bytes:1', limit: 5 })
    t.same(
      JSON.parse(body).result.publications.map(({ b64data }: Json) =>
        Buffer.from(String(b64data), 'base64').toString()
      ),
      ['\u0001\u0002', '{"text":1}']
    )
  })

  t.test('an anonymous user may publish if the backend allows it', async (t) => {
    backend.on('connect', { result: {} })
    const client = await openCodecClient(t, 'json', edge.url)
    await client.request({ id: 1, connect: {} })
    t.match(await client.request({ id: 2, publish: { channel: 'room:anon', data: '1' } }), { publish: {} })
    t.equal(backend.of('publish')[0]?.body.user, '')
  })
})
