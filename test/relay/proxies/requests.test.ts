import t from 'tap'
import { signatureError } from '../../../src/shared/webhook-signature.js'
import { type EventRequest, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { type Json, openClient, type RawClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { configOf, relayToken } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'
import { selfSigned, startTlsEventBackend } from '../../helper/tls-event-backend.js'

// The HTTP requests of proxies: headers, signatures, TLS, metrics and spans. Methods `<proxy>:x` go to a proxy of their own.

const backend = await startEventBackend(t)
const keys = await selfSigned(t.testdir(), 'backend.example')
const tlsEndpoint = await startTlsEventBackend(t, keys)
const TRUSTED = { enabled: true, server_ca_pem: keys.cert, server_name: 'backend.example' }

const proxy = (name: string, options: object = {}) => ({
  name,
  endpoint: `${backend.endpoint(name)}?token=secret`,
  timeout: '30s',
  ...options
})

const tls = (name: string, options: object) => proxy(name, { endpoint: tlsEndpoint, http: { tls: options } })

const PROXIES = [
  proxy('bare'),
  proxy('listed', {
    http_headers: ['COOKIE', 'X-User', 'X-Both'],
    emulated_headers: ['authorization', 'x-both', 'X-Odd'],
    http: { static_headers: { 'X-User': 'static', 'X-Static': 'žluť', Authorization: 'static' } }
  }),
  proxy('signed', { http: { signing_secret: 'the new secret', signing_secret_previous: 'the old secret' } }),
  tls('trusted', TRUSTED),
  tls('untrusted', {}),
  tls('misnamed', { ...TRUSTED, server_name: 'other.example' }),
  tls('careless', { enabled: true, insecure_skip_verify: true }),
  tls('mutual', { ...TRUSTED, cert_pem: keys.cert, key_pem: keys.key })
]

const file = {
  // No pings between the replies.
  client: { ping_interval: '1h' },
  proxies: PROXIES,
  rpc: { namespaces: PROXIES.map(({ name }) => ({ name, proxy_enabled: true, proxy_name: name })) }
}

const started: { name: string; attributes: Json; error: string | undefined }[] = []
const tracer = {
  startSpan: (name: string, _parent: object, { attributes }: { attributes: Json }) => {
    const entry = { name, attributes, error: undefined as string | undefined }
    started.push(entry)
    const span = {
      traceId: 'a'.repeat(32),
      isSampled: true,
      traceparent: 'the trace',
      headers: ['traceparent', 'the trace'],
      startChild: () => span,
      setAttributes: (more: Json) => {
        entry.attributes = { ...entry.attributes, ...more }
      },
      rename: () => undefined,
      end: (error?: string) => {
        entry.error = error
      }
    }
    return span
  },
  close: async () => undefined
}

const edge = await startRelay(t, file, {}, { tracer })

const HEADERS = {
  cookie: 'session=1',
  'x-user': '42',
  'x-both': 'real',
  'x-other': 'no',
  traceparent: 'of the client',
  authorization: 'real'
}

const connect = async (headers: Json = {}): Promise<RawClient> => {
  const client = await openClient(t, edge.url, { headers: HEADERS })
  await client.request({ id: 1, connect: { token: relayToken({ sub: '42' }), headers } })
  return client
}

const call = async (client: RawClient, method: string) => {
  const { rpc, error } = await client.request({ id: 2, rpc: { method, data: { a: 1 } } })
  return rpc ?? error
}

const lastRequest = (event: string): EventRequest => required(backend.of(event).at(-1))

const client = await connect({
  Authorization: 'Bearer é',
  'x-BOTH': 'emulated',
  'x-user': 'forged',
  'X-Static': 'forged'
})

t.test('headers', async (t) => {
  t.test('without listed headers nothing of the client is sent', async (t) => {
    await call(client, 'bare:x')
    const { headers, method, path } = lastRequest('bare')
    t.equal(method, 'POST')
    t.equal(path, '/bare?token=secret')
    t.same(Object.keys(headers).toSorted(), ['connection', 'content-length', 'content-type', 'host', 'traceparent'])
    t.equal(headers['content-type'], 'application/json')
    t.equal(headers.traceparent, 'the trace')
  })

  t.test('listed headers are sent: of the request, else of the connect command, else static', async (t) => {
    await call(client, 'listed:x')
    const { headers } = lastRequest('listed')
    t.match(headers, {
      cookie: 'session=1',
      'x-user': '42',
      'x-both': 'real',
      authorization: Buffer.from('Bearer é').toString('latin1'),
      'x-static': Buffer.from('žluť').toString('latin1')
    })
    t.notOk('x-other' in headers)
  })

  t.test(
    'a header of the connect command that is not listed as emulated cannot replace one of the request',
    async (t) => {
      const forger = await openClient(t, edge.url)
      await forger.request({
        id: 1,
        connect: { token: relayToken({ sub: '1' }), headers: { 'X-User': 'forged', Cookie: 'x=1' } }
      })
      await call(forger, 'listed:x')
      const { headers } = lastRequest('listed')
      t.equal(headers['x-user'], 'static')
      t.notOk('cookie' in headers)
    }
  )

  t.test('a value with a line break or NUL is error 100, and nothing is sent', async (t) => {
    for (const value of ['a\r\nX-Admin: 1', 'a\nb', 'a\0b']) {
      const odd = await connect({ 'x-odd': value })
      const before = backend.requests.length
      t.match(await call(odd, 'listed:x'), { code: 100 })
      t.equal(backend.requests.length, before)
      t.match(await call(odd, 'bare:x'), {}, 'a proxy that does not list it is asked')
    }
  })
})

t.test('a signed request has a signature for each secret', async (t) => {
  await call(client, 'signed:x')
  const { headers, text } = lastRequest('signed')
  const header = String(headers['x-gatehouse-signature'])
  for (const secret of ['the new secret', 'the old secret'])
    t.equal(signatureError(header, text, [secret], Date.now()), null)
  t.equal(signatureError(header, text, ['another secret'], Date.now()), 'mismatch')
  t.equal(signatureError(header, `${text} `, ['the new secret'], Date.now()), 'mismatch')
})

t.test('TLS', async (t) => {
  const CASES: readonly (readonly [name: string, reply: object])[] = [
    ['trusted', { data: '' }],
    ['untrusted', { code: 100 }],
    ['misnamed', { code: 100 }],
    ['careless', { data: '' }],
    ['mutual', { data: 'backend.example' }]
  ]
  for (const [name, reply] of CASES) {
    t.test(`the ${name} proxy receives ${JSON.stringify(reply)}`, async (t) => {
      t.match(await call(client, `${name}:x`), reply)
    })
  }
})

t.test('each call has a span with its result, without the path and headers', async (t) => {
  started.length = 0
  await call(client, 'bare:x')
  await call(client, 'untrusted:x')
  t.match(started, [
    {
      name: 'proxy rpc',
      error: undefined,
      attributes: {
        'http.request.method': 'POST',
        'server.address': '127.0.0.1',
        'server.port': Number,
        'gatehouse.proxy': 'bare',
        'http.response.status_code': 200
      }
    },
    { error: 'network', attributes: { 'gatehouse.proxy': 'untrusted' } }
  ])
  t.notMatch(JSON.stringify(started), /secret|session/)
})

t.test('metrics', async (t) => {
  const labels = 'protocol="http",type="rpc",name="bare"'
  const { body: before } = await send(edge.url, '/metrics')
  const count = (text: string): number =>
    Number(new RegExp(`^centrifugo_proxy_duration_seconds_count\\{${labels}\\} (\\d+)$`, 'm').exec(text)?.[1])
  await call(client, 'bare:x')
  const { body: after } = await send(edge.url, '/metrics')
  t.equal(count(after), count(before) + 1)
  for (const series of [
    `centrifugo_proxy_duration_seconds_histogram_bucket{${labels},le="0.005"}`,
    `centrifugo_proxy_duration_seconds_histogram_bucket{${labels},le="10"}`,
    `centrifugo_proxy_duration_seconds{${labels},quantile="0.99"}`,
    `centrifugo_proxy_errors{${labels}} 0`,
    `centrifugo_proxy_inflight_requests{${labels}} 0`,
    'centrifugo_proxy_errors{protocol="http",type="rpc",name="signed"} 0'
  ])
    t.ok(after.includes(series), series)
})

t.test('a reload', async (t) => {
  const calls = (endpoint: string, options: object = {}) => ({
    rpc: { proxy: { endpoint, timeout: '30s', ...options }, without_namespace: { proxy_enabled: true } }
  })

  t.test('calls under way end with the old proxy, later ones use the new one', async (t) => {
    const relay = await startRelay(t, calls(backend.endpoint('old')))
    const held = backend.hold('old')
    const [one, two] = [await openClient(t, relay.url), await openClient(t, relay.url)]
    for (const each of [one, two]) await each.request({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
    const waiting = call(one, 'x')
    await held.next()
    relay.running.configure(configOf(calls(backend.endpoint('new'))))
    backend.on('new', { result: { data: 'new' } })
    t.same(await call(two, 'x'), { data: 'new' })
    held.release({ result: { data: 'old' } })
    t.same(await waiting, { data: 'old' })
    t.same(await call(one, 'x'), { data: 'new' })
  })

  t.test('an unchanged proxy keeps its connections', async (t) => {
    const ports: (number | undefined)[] = []
    backend.on('kept', (_request, response) => {
      ports.push(response.socket?.remotePort)
      return {}
    })
    const relay = await startRelay(t, calls(backend.endpoint('kept')))
    const one = await openClient(t, relay.url)
    await one.request({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
    await call(one, 'x')
    relay.running.configure(configOf({ ...calls(backend.endpoint('kept')), client: { channel_limit: 7 } }))
    await call(one, 'x')
    relay.running.configure(configOf(calls(backend.endpoint('kept'), { max_queue: 7 })))
    await call(one, 'x')
    t.equal(ports[0], ports[1])
    t.not(ports[1], ports[2])
  })
})

t.test('a shutdown lets calls under way end', async (t) => {
  const relay = await startRelay(t, {
    rpc: { proxy: { endpoint: backend.endpoint('slow'), timeout: '30s' }, without_namespace: { proxy_enabled: true } },
    shutdown: { timeout: '30s' }
  })
  const held = backend.hold('slow')
  const waiting = await openClient(t, relay.url)
  await waiting.request({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
  waiting.send({ id: 2, rpc: { method: 'x' } })
  await held.next()
  const closed = relay.running.close()
  held.release({ result: { data: 'in time' } })
  t.match(await waiting.next(), { id: 2, rpc: { data: 'in time' } })
  t.match(await waiting.closed, /^3001/)
  await closed
})

t.test('the relay sends no more requests at once than configured while many clients connect', async (t) => {
  const CLIENTS = 300
  const relay = await startRelay(t, {
    client: {
      proxy: { connect: { enabled: true, endpoint: backend.endpoint('connect'), timeout: '60s', max_inflight: 5 } }
    }
  })
  backend.reset()
  backend.on('connect', ({ body }) => ({ result: { user: `user of ${body.client}` } }))
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => openClient(t, relay.url)))
  const replies = await Promise.all(clients.map((each) => each.request({ id: 1, connect: {} })))
  t.ok(replies.every(({ error }) => error === undefined))
  t.ok(backend.maxConcurrency <= 5, `${backend.maxConcurrency} requests at once`)
  t.equal(backend.of('connect').length, CLIENTS)
  t.ok(
    relay.relay.clients.every(({ id, user }) => user === `user of ${id}`),
    'each answer belongs to its client'
  )
})

t.test('many calls of one client at the same time cause no warning, and all end when it leaves', async (t) => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error): void => void warnings.push(name)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const CALLS = 30
  const relay = await startRelay(t, {
    client: { concurrency: CALLS },
    rpc: {
      proxy: { endpoint: backend.endpoint('many'), timeout: '30s', max_inflight: 10 },
      without_namespace: { proxy_enabled: true }
    }
  })
  const held = backend.hold('many')
  const one = await openClient(t, relay.url)
  await one.request({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
  for (let id = 2; id < 2 + CALLS; id++) one.send({ id, rpc: { method: 'x' } })
  const running: EventRequest[] = []
  while (running.length < 10) running.push(await held.next())
  one.ws.terminate()
  await eventually(() => running.every(({ isAborted }) => isAborted))
  t.equal(backend.of('many').length, 10, 'calls that waited are not sent')
  t.same(warnings, [])
})
