import t, { type Test } from 'tap'
import { type Answer, HANG, RawAnswer, RESET, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient, type RawClient } from '../../helper/raw-client.js'
import { recordedLog } from '../../helper/recorded-log.js'
import { startRelay } from '../../helper/relay.js'
import { startRawBackend } from '../../helper/scripted-backend.js'

// Faults of a backend, seen by a client that calls it. Calls go to a proxy of their own: `method` is `<proxy>:x`.

const MAX_RESPONSE_BYTES = 5000

const backend = await startEventBackend(t)
const raw = await startRawBackend(t, () => undefined)
const { lines, log } = recordedLog()

const proxy = (name: string, options: object = {}) => ({
  name,
  endpoint: backend.endpoint(name),
  // Long, because tests share the machine.
  timeout: '30s',
  ...options
})

const PROXIES = [
  proxy('plain', {
    http: {
      max_response_size: MAX_RESPONSE_BYTES,
      status_to_code_transforms: [
        { status_code: 404, to_error: { code: 404, message: 'not found', temporary: true } },
        { status_code: 403, to_disconnect: { code: 4503, reason: 'banned' } },
        { status_code: 410, to_disconnect: { code: 4510 } }
      ]
    }
  }),
  proxy('hasty', { timeout: '100ms' }),
  proxy('narrow', { max_inflight: 2, max_queue: 3 }),
  proxy('other'),
  proxy('refused', { endpoint: 'http://127.0.0.1:1/' }),
  proxy('raw', { endpoint: `${raw.url}/raw`, timeout: '30s', max_inflight: 1 }),
  proxy('drip', { endpoint: `${raw.url}/drip`, timeout: '200ms' })
]

const edge = await startRelay(
  t,
  {
    // No pings between the replies.
    client: { ping_interval: '1h' },
    proxies: PROXIES,
    rpc: { namespaces: PROXIES.map(({ name }) => ({ name, proxy_enabled: true, proxy_name: name })) }
  },
  {},
  { log }
)

let lastId = 1

const call = async (client: RawClient, method: string, data: unknown = 1) => {
  const id = ++lastId
  client.send({ id, rpc: { method, data } })
  const { error, rpc } = await client.next()
  return error ?? rpc
}

const linesOf = (name: string) => lines.filter((line) => line.proxy === name)

const INTERNAL = { code: 100, message: 'internal server error', temporary: true }

const metric = async (name: string): Promise<number> => {
  const { body } = await send(edge.url, '/metrics')
  const line = body.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 'NaN')
}

const metricName = (name: string, proxyName: string): string =>
  `${name}{protocol="http",type="rpc",name="${proxyName}"}`

const client = await connectedClient(t, edge.url)

const FAULTS: readonly (readonly [title: string, answer: Answer, reason: string])[] = [
  ['status 500', new RawAnswer(500, '{"result":{"data":1}}'), 'status'],
  ['status 201', new RawAnswer(201, '{"result":{"data":1}}'), 'status'],
  ['status 204', new RawAnswer(204), 'status'],
  ['a redirect', new RawAnswer(302, '', { location: backend.endpoint('other') }), 'status'],
  ['a permanent redirect', new RawAnswer(308, '', { location: backend.endpoint('other') }), 'status'],
  ['a login page with status 200', new RawAnswer(200, '<html>sign in</html>'), 'invalid-response'],
  ['an empty body', new RawAnswer(200, ''), 'invalid-response'],
  ['half an object', new RawAnswer(200, '{"result":{"data":1}'), 'invalid-response'],
  ['text after the object', new RawAnswer(200, '{"result":{"data":1}} x'), 'invalid-response'],
  ['a list', new RawAnswer(200, '[{"result":{"data":1}}]'), 'invalid-response'],
  [
    'text that is not UTF-8',
    new RawAnswer(200, Buffer.from('{"result":{"data":"\xff"}}', 'latin1')),
    'invalid-response'
  ],
  ['a result that is a list', new RawAnswer(200, '{"result":[]}'), 'invalid-response'],
  ['an error that is text', new RawAnswer(200, '{"error":"no","result":{"data":1}}'), 'invalid-response'],
  ['an error code that is text', { error: { code: '400', message: 'no' } }, 'invalid-response'],
  ['a negative error code', { error: { code: -1, message: 'no' } }, 'invalid-response'],
  ['a message that is a number', { error: { code: 400, message: 1 } }, 'invalid-response'],
  ['a disconnect with a wrong type beside a result', { disconnect: { code: true }, result: {} }, 'invalid-response'],
  ['data that is there twice', new RawAnswer(200, '{"result":{"data":1,"data":2}}'), 'invalid-response'],
  ['bad base64', { result: { b64data: '####' } }, 'invalid-response'],
  ['base64 without its end', { result: { b64data: 'eyJ9x' } }, 'invalid-response'],
  ['a body over the limit', { result: { data: 'x'.repeat(MAX_RESPONSE_BYTES) } }, 'too-large'],
  ['a closed connection', RESET, 'network']
]

t.test('a response that cannot be used', async (t) => {
  for (const [title, answer, reason] of FAULTS) {
    t.test(`the client receives error 100 after ${title}`, async (t) => {
      const name = metricName('centrifugo_proxy_errors', 'plain')
      const errors = await metric(name)
      backend.on('plain', answer)
      lines.length = 0

      t.same(await call(client, 'plain:x'), INTERNAL)
      t.equal(await metric(name), errors + 1)
      // Another test may have caused the line.
      const logged = linesOf('plain').filter((line) => line.reason === reason)
      for (const line of logged) t.match(line, { level: 50, event: 'rpc', client: String, msg: 'event proxy failed' })
      backend.on('plain', { result: { data: 2 } })
      t.same(await call(client, 'plain:x'), { data: 2 }, 'the connection and the proxy can be used again')
    })
  }

  t.test('no redirect is followed', async (t) => {
    t.equal(backend.of('other').length, 0)
  })

  t.test('failures are logged with their reason and status, not each of them', async (t) => {
    lines.length = 0
    backend.on('other', new RawAnswer(500, 'a secret text'))
    for (let count = 0; count < 20; count++) await call(client, 'other:x', 'a secret text')
    t.same(
      linesOf('other')
        .slice(0, 1)
        .map(({ level, event, reason, status, msg }) => ({ level, event, reason, status, msg })),
      [{ level: 50, event: 'rpc', reason: 'status', status: 500, msg: 'event proxy failed' }]
    )
    t.ok(linesOf('other').length < 20, 'not every failure is logged')
    t.notMatch(JSON.stringify(lines), /secret/)
  })

  t.test('the client receives error 100 if the backend refuses connections', async (t) => {
    lines.length = 0
    t.same(await call(client, 'refused:x'), INTERNAL)
    t.match(linesOf('refused'), [{ reason: 'network', cause: 'ECONNREFUSED' }])
  })
})

t.test('decisions of the backend', async (t) => {
  const CASES: readonly (readonly [title: string, answer: Answer, reply: unknown])[] = [
    ['an error is passed to the client', { error: { code: 1404, message: 'no' } }, { code: 1404, message: 'no' }],
    [
      'a temporary error is passed to the client',
      { error: { code: 400, message: 'no', temporary: true } },
      { code: 400, message: 'no', temporary: true }
    ],
    ['an error without a code becomes 100', { error: { message: 'no' } }, INTERNAL],
    [
      'an error wins over a result',
      { result: { data: 1 }, error: { code: 400, message: 'no' } },
      { code: 400, message: 'no' }
    ],
    [
      'a listed status becomes its error',
      new RawAnswer(404, 'x'),
      { code: 404, message: 'not found', temporary: true }
    ],
    ['null is no result', new RawAnswer(200, ' null\n'), {}],
    ['an empty object is no result', {}, {}],
    ['null as a result is no result', { result: null, error: null, disconnect: null }, {}],
    ['unknown fields are ignored', { result: { data: 1, caps: [], labels: 7 }, more: true }, { data: 1 }],
    ['null is a value of data', { result: { data: null } }, { data: null }],
    [
      'base64 wins over data',
      { result: { data: 1, b64data: Buffer.from('{"a":2}').toString('base64') } },
      { data: { a: 2 } }
    ]
  ]
  for (const [title, answer, reply] of CASES) {
    t.test(title, async (t) => {
      backend.on('plain', answer)
      t.same(await call(client, 'plain:x'), reply)
    })
  }

  const DISCONNECTS: readonly (readonly [title: string, answer: Answer, closed: string])[] = [
    ['a disconnect closes the connection', { disconnect: { code: 4501, reason: 'no' }, result: {} }, '4501 no'],
    ['a disconnect wins over an error', { disconnect: { code: 1000, reason: 'bye' }, error: { code: 1 } }, '1000 bye'],
    [
      'a code that no close frame can have becomes 3004',
      { disconnect: { code: 2000, reason: 'no' } },
      '3004 internal server error'
    ],
    ['a disconnect without a code becomes 3004', { disconnect: { reason: 'no' } }, '3004 internal server error'],
    ['an empty reason is replaced', { disconnect: { code: 4500 } }, '4500 disconnected by the backend'],
    [
      'a long reason is cut between characters',
      { disconnect: { code: 4500, reason: `${'x'.repeat(122)}é` } },
      `4500 ${'x'.repeat(122)}`
    ],
    ['a listed status closes the connection', new RawAnswer(403), '4503 banned'],
    ['a listed status without a reason closes the connection', new RawAnswer(410), '4510 disconnected by the backend']
  ]
  for (const [title, answer, closed] of DISCONNECTS) {
    t.test(title, async (t) => {
      backend.on('plain', answer)
      const leaving = await connectedClient(t, edge.url)
      leaving.send({ id: 9, rpc: { method: 'plain:x' } })
      t.equal(await leaving.closed, closed)
    })
  }

  t.test('numbers that JavaScript cannot represent arrive unchanged in both directions', async (t) => {
    const data = '{"id":12345678901234567890,"x":1.10}'
    backend.on('plain', new RawAnswer(200, `{"result":{"data":${data}}}`))
    const texts: string[] = []
    client.ws.once('message', (text) => texts.push(String(text)))
    client.send(`{"id":5000,"rpc":{"method":"plain:x","data":${data}}}`)
    await client.next()
    t.match(texts.join(), data)
    t.match(backend.of('plain').at(-1)?.text, `"data":${data}`)
  })
})

t.test('time and size limits', async (t) => {
  t.test('a backend that does not answer in time ends in error 100', async (t) => {
    backend.on('hasty', HANG)
    t.same(await call(client, 'hasty:x'), INTERNAL)
    await eventually(() => backend.of('hasty').every(({ isAborted }) => isAborted))
  })

  t.test('a body that drips ends when the time is over', async (t) => {
    raw.respond = ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
      const timer = setInterval(() => socket.write(' '), 10)
      socket.once('close', () => clearInterval(timer))
    }
    t.same(await call(client, 'drip:x'), INTERNAL)
    await eventually(() => raw.connections.at(-1)?.destroyed === true)
  })

  t.test('an endless body is cut when it exceeds the limit, before it ends', async (t) => {
    const isClosed = new Promise<void>((resolve) => {
      backend.on('plain', (_request, response) => {
        const timer = setInterval(() => response.write('x'.repeat(1000)), 1)
        response.once('close', () => {
          clearInterval(timer)
          resolve()
        })
        return HANG
      })
    })
    t.same(await call(client, 'plain:x'), INTERNAL)
    await isClosed
  })

  t.test('a listed status counts before its endless body ends', async (t) => {
    backend.on('plain', (_request, response) => {
      response.writeHead(404)
      response.write('x')
      return HANG
    })
    t.match(await call(client, 'plain:x'), { code: 404 })
  })

  t.test('a cut body ends in error 100', async (t) => {
    raw.respond = ({ socket }) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"result":{}')
    t.same(await call(client, 'raw:x'), INTERNAL)
  })

  t.test('an informational response before the final one is skipped', async (t) => {
    raw.respond = ({ socket }) =>
      socket.write('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"result":{"data":3}}')
    t.same(await call(client, 'raw:x'), { data: 3 })
  })
})

const answer = (data: number): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${21 + String(data).length - 1}\r\n\r\n{"result":{"data":${data}}}`

t.test('connections', async (t) => {
  t.test('a connection is reused', async (t) => {
    raw.respond = ({ socket, indexOnConnection }) => socket.write(answer(indexOnConnection))
    await call(client, 'raw:x')
    const before = raw.connections.length
    t.notSame(await call(client, 'raw:x'), { data: 0 })
    t.equal(raw.connections.length, before)
  })

  t.test('a kept connection that the backend has closed is replaced without an error', async (t) => {
    raw.respond = ({ socket }) => socket.end(answer(7))
    for (let count = 0; count < 20; count++) t.same(await call(client, 'raw:x'), { data: 7 })
  })

  t.test('a request is never repeated, also if the connection breaks before a response', async (t) => {
    raw.respond = ({ socket }) => socket.write(answer(1))
    await call(client, 'raw:x')
    const before = raw.requests.length
    raw.respond = ({ socket }) => socket.resetAndDestroy()
    t.same(await call(client, 'raw:x'), INTERNAL)
    t.equal(raw.requests.length, before + 1)
  })
})

const clients = (t: Test, count: number): Promise<RawClient[]> =>
  Promise.all(Array.from({ length: count }, () => connectedClient(t, edge.url)))

t.test('requests at once', async (t) => {
  t.test('more requests than allowed wait, and beyond the queue clients receive error 111 at once', async (t) => {
    const held = backend.hold('narrow')
    const all = await clients(t, 8)
    const replies = all.map((each) => call(each, 'narrow:x'))
    const refused = await Promise.race(replies)
    t.same(refused, { code: 111, message: 'too many requests', temporary: true })
    await held.next()
    await held.next()
    t.equal(await metric(metricName('centrifugo_proxy_inflight_requests', 'narrow')), 2)
    held.release({ result: { data: 1 } })
    const outcomes = await Promise.all(replies)
    t.equal(outcomes.filter((each) => JSON.stringify(each) === '{"data":1}').length, 5)
    t.equal(backend.of('narrow').length, 5)
    t.equal(await metric(metricName('centrifugo_proxy_inflight_requests', 'narrow')), 0)
  })

  t.test('a slow proxy does not delay another one', async (t) => {
    const held = backend.hold('narrow')
    const [first, second, third] = await clients(t, 3)
    if (first === undefined || second === undefined || third === undefined) throw new Error('no client')
    const slow = [call(first, 'narrow:x'), call(second, 'narrow:x')]
    await held.next()
    await held.next()
    backend.on('other', { result: { data: 'quick' } })
    t.same(await call(third, 'other:x'), { data: 'quick' })
    held.release({})
    await Promise.all(slow)
  })

  t.test('a client that leaves aborts its request and frees the place', async (t) => {
    const before = backend.of('narrow').length
    const held = backend.hold('narrow')
    const all = await clients(t, 4)
    const durations = metricName('centrifugo_proxy_duration_seconds_histogram_count', 'narrow')
    const measured = await metric(durations)
    const errors = await metric(metricName('centrifugo_proxy_errors', 'narrow'))
    for (const each of all) each.send({ id: 9, rpc: { method: 'narrow:x' } })
    const running = [await held.next(), await held.next()]
    for (const each of all.slice(0, 3)) each.ws.terminate()
    await eventually(() => running.filter(({ isAborted }) => isAborted).length >= 1)
    held.release({})
    const [last] = all.slice(3)
    t.same((await last?.next())?.rpc, {})
    await eventually(async () => (await metric(metricName('centrifugo_proxy_inflight_requests', 'narrow'))) === 0)
    t.ok(backend.of('narrow').length - before <= 3)
    t.equal(await metric(durations), measured + 1, 'aborted calls are not counted')
    t.equal(await metric(metricName('centrifugo_proxy_errors', 'narrow')), errors)
  })
})
