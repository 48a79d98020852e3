import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import { register as globalRegistry } from 'prom-client'
import t from 'tap'
import { GATEWAY_ERROR_CODES, GatewayError, type GatewayErrorCode } from '../../src/gateway/errors.js'
import { errorSender } from '../../src/gateway/http/error-sender.js'
import { OpenReplies } from '../../src/gateway/http/open-replies.js'
import { SecretPaths } from '../../src/gateway/http/secret-paths.js'
import { GatewayMetrics } from '../../src/gateway/metrics.js'
import { requestContext } from '../../src/gateway/plugins/request-context.js'
import { recordRequests, requestLog, trackRejected } from '../../src/gateway/plugins/request-log.js'
import { metricsRoute } from '../../src/gateway/routes/metrics-route.js'
import { AddressSet } from '../../src/shared/ip-address.js'
import { portOf } from '../helper/address.js'
import type { Teardown } from '../helper/child.js'
import { browse, responseOf } from '../helper/exact-http.js'
import { startGateway, type TestGateway } from '../helper/gateway.js'
import { type Message, send, sendRaw } from '../helper/http.js'

const NOTHING = {
  loginKeys: () => 0,
  inFlight: { default: () => 0 },
  auditFallback: () => false,
  auditDropped: () => 0
}

/** Every sample by its name and labels. */
const samplesOf = async (metrics: GatewayMetrics): Promise<Map<string, number>> => {
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))])
  )
}

/** The samples of one name that are not zero, without the name. */
const countsOf = async (metrics: GatewayMetrics, name: string): Promise<Record<string, number>> =>
  Object.fromEntries(
    [...(await samplesOf(metrics))]
      .filter(([sample, value]) => sample.startsWith(`${name}{`) && value !== 0)
      .map(([sample, value]) => [sample.slice(name.length), value])
  )

const REQUESTS = 'gateway_http_requests_total'
const DURATION = 'gateway_http_request_duration_seconds'

const STATUSES: readonly (readonly [status: number, cutShort: boolean, label: string])[] = [
  [200, false, '2xx'],
  [204, false, '2xx'],
  [304, false, '3xx'],
  [401, false, '4xx'],
  [499, false, '4xx'],
  [500, false, '5xx'],
  [599, false, '5xx'],
  [101, false, 'other'],
  [600, false, 'other'],
  [999, false, 'other'],
  [200, true, 'cut'],
  [499, true, 'cut'],
  [502, true, 'cut']
]

const METHODS: readonly (readonly [method: string, label: string])[] = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map((method) => [method, method] as const),
  ['PROPFIND', 'OTHER'],
  ['get', 'OTHER'],
  ['', 'OTHER'],
  ['__proto__', 'OTHER']
]

t.test('the count of requests', async (t) => {
  for (const [status, cutShort, label] of STATUSES) {
    t.test(`a response with ${status}${cutShort ? ', cut off,' : ''} is counted as ${label}`, async (t) => {
      const metrics = new GatewayMetrics(NOTHING)

      metrics.requestEnded('/api/zones/:id', 'GET', { status, cutShort, ms: 1 })

      t.same(await countsOf(metrics, REQUESTS), { [`{route="/api/zones/:id",method="GET",status="${label}"}`]: 1 })
    })
  }

  for (const [method, label] of METHODS) {
    t.test(`the method "${method}" is counted as ${label}`, async (t) => {
      const metrics = new GatewayMetrics(NOTHING)

      metrics.requestEnded('/api/*', method, { status: 200, cutShort: false, ms: 1 })

      t.same(await countsOf(metrics, REQUESTS), { [`{route="/api/*",method="${label}",status="2xx"}`]: 1 })
    })
  }

  t.test('requests are counted by route, method and outcome', async (t) => {
    const metrics = new GatewayMetrics(NOTHING)

    for (const [route, method, status, times] of [
      ['/a', 'GET', 200, 3],
      ['/a', 'GET', 404, 2],
      ['/a', 'POST', 200, 4],
      ['/b', 'GET', 200, 5],
      ['/a', 'GET', 200, 10]
    ] as const) {
      for (let time = 0; time < times; time++) metrics.requestEnded(route, method, { status, cutShort: false, ms: 1 })
    }

    t.same(await countsOf(metrics, REQUESTS), {
      '{route="/a",method="GET",status="2xx"}': 13,
      '{route="/a",method="GET",status="4xx"}': 2,
      '{route="/a",method="POST",status="2xx"}': 4,
      '{route="/b",method="GET",status="2xx"}': 5
    })
  })

  t.test('the error counts of a route start at zero', async (t) => {
    const metrics = new GatewayMetrics(NOTHING)

    metrics.requestEnded('/a', 'GET', { status: 200, cutShort: false, ms: 1 })

    t.equal((await samplesOf(metrics)).get(`${REQUESTS}{route="/a",method="GET",status="5xx"}`), 0)
  })

  t.test('special characters of a route are escaped in the label', async (t) => {
    const metrics = new GatewayMetrics(NOTHING)

    metrics.requestEnded('/a"b\\c\nd', 'GET', { status: 200, cutShort: false, ms: 1 })

    t.match(await metrics.text(), `${REQUESTS}{route="/a\\"b\\\\c\\nd",method="GET",status="2xx"} 1\n`)
  })
})

const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

const DURATIONS: readonly (readonly [ms: number, firstBound: number | '+Inf'])[] = [
  [0, 0.001],
  [0.9, 0.001],
  [1, 0.001],
  [1.1, 0.0025],
  [50, 0.05],
  [51, 0.1],
  [30_000, 30],
  [30_001, '+Inf']
]

t.test('the durations', async (t) => {
  for (const [ms, firstBound] of DURATIONS) {
    t.test(`a duration of ${ms} ms is in every bucket from ${firstBound} on`, async (t) => {
      const metrics = new GatewayMetrics(NOTHING)

      metrics.requestEnded('/a', 'GET', { status: 200, cutShort: false, ms })
      metrics.ofBackend('default').backendResponded('/a', ms / 1000)

      const samples = await samplesOf(metrics)
      for (const [name, labels] of [
        [DURATION, 'route="/a",method="GET"'],
        ['gateway_backend_duration_seconds', 'route="/a"']
      ]) {
        const reached = [...BOUNDS, '+Inf'].filter((le) => samples.get(`${name}_bucket{le="${le}",${labels}}`) === 1)
        t.same(reached, [...BOUNDS, '+Inf'].slice([...BOUNDS, '+Inf'].indexOf(firstBound)))
        t.equal(samples.get(`${name}_sum{${labels}}`), ms / 1000)
        t.equal(samples.get(`${name}_count{${labels}}`), 1)
      }
    })
  }

  t.test('durations are summed per route and method', async (t) => {
    const metrics = new GatewayMetrics(NOTHING)

    for (const ms of [1, 20, 20, 40_000]) metrics.requestEnded('/a', 'GET', { status: 200, cutShort: ms === 20, ms })

    const samples = await samplesOf(metrics)
    const bucket = (le: string) => samples.get(`${DURATION}_bucket{le="${le}",route="/a",method="GET"}`)
    t.same(['0.001', '0.01', '0.025', '30', '+Inf'].map(bucket), [1, 1, 3, 3, 4])
    t.equal(samples.get(`${DURATION}_count{route="/a",method="GET"}`), 4)
    t.equal(samples.get(`${DURATION}_sum{route="/a",method="GET"}`), 40.041)
  })
})

const BACKEND_ERRORS: readonly (readonly [error: unknown, label: string])[] = [
  [Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [Object.assign(new Error('reset'), { code: 'UND_ERR_SOCKET' }), 'UND_ERR_SOCKET'],
  [Object.assign(new Error('slow'), { code: 'UND_ERR_HEADERS_TIMEOUT' }), 'UND_ERR_HEADERS_TIMEOUT'],
  [Object.assign(new Error('made up'), { code: 'E"made"up' }), 'OTHER'],
  [Object.assign(new Error('numbered'), { code: 7 }), 'OTHER'],
  [new Error('plain'), 'OTHER'],
  [undefined, 'OTHER'],
  [null, 'OTHER'],
  ['text', 'OTHER']
]

t.test('the count of backend errors', async (t) => {
  t.test('every code exists before the first error', async (t) => {
    const samples = await samplesOf(new GatewayMetrics(NOTHING))
    for (const [, label] of BACKEND_ERRORS) t.equal(samples.get(`gateway_backend_errors_total{code="${label}"}`), 0)
  })

  for (const [error, label] of BACKEND_ERRORS) {
    t.test(`the backend error ${String(error)} is counted as ${label}`, async (t) => {
      const metrics = new GatewayMetrics(NOTHING)

      metrics.ofBackend('default').backendFailed(error)
      metrics.ofBackend('default').backendFailed(error)

      t.same(await countsOf(metrics, 'gateway_backend_errors_total'), { [`{code="${label}"}`]: 2 })
    })
  }
})

t.test('rejections are counted by error code', async (t) => {
  const metrics = new GatewayMetrics(NOTHING)

  for (const code of ['CSRF_MISMATCH', 'RATE_LIMITED', 'CSRF_MISMATCH'] satisfies GatewayErrorCode[])
    metrics.rejected(code)

  t.same(await countsOf(metrics, 'gateway_refusals_total'), {
    '{code="CSRF_MISMATCH"}': 2,
    '{code="RATE_LIMITED"}': 1
  })
})

t.test('values of other parts', async (t) => {
  t.test('values of other parts are read at every scrape', async (t) => {
    const now = { keys: 3, inFlight: 7, fallback: false, dropped: 0 }
    const metrics = new GatewayMetrics({
      loginKeys: () => now.keys,
      inFlight: { default: () => now.inFlight },
      auditFallback: () => now.fallback,
      auditDropped: () => now.dropped
    })
    const read = async () => {
      const samples = await samplesOf(metrics)
      return ['login_limit_keys', 'in_flight', 'audit_fallback', 'audit_dropped_total'].map((name) =>
        samples.get(`gateway_${name}`)
      )
    }

    t.same(await read(), [3, 7, 0, 0])
    Object.assign(now, { keys: 2, inFlight: 0, fallback: true, dropped: 12 })
    t.same(await read(), [2, 0, 1, 12])
    t.same(await read(), [2, 0, 1, 12], 'reading changes nothing')
  })
})

const PROCESS_SAMPLES = [
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'nodejs_eventloop_lag_p99_seconds',
  'nodejs_heap_size_used_bytes'
]

t.test('the registry', async (t) => {
  for (const name of PROCESS_SAMPLES) {
    t.test(`the metrics include ${name} of the process`, async (t) => {
      t.ok((await samplesOf(new GatewayMetrics(NOTHING))).has(name))
    })
  }

  t.test('the metrics include garbage collection durations', async (t) => {
    t.match(await new GatewayMetrics(NOTHING).text(), '# TYPE nodejs_gc_duration_seconds histogram\n')
  })

  t.test('gateways share no metrics with each other or with the default registry', async (t) => {
    const [one, other] = [new GatewayMetrics(NOTHING), new GatewayMetrics(NOTHING)]

    one.requestEnded('/a', 'GET', { status: 200, cutShort: false, ms: 1 })
    one.rejected('NOT_FOUND')

    t.same(await countsOf(other, REQUESTS), {})
    t.same(await countsOf(other, 'gateway_refusals_total'), {})
    t.same(globalRegistry.getMetricsAsArray(), [])
  })

  t.test('the metrics are valid Prometheus text', async (t) => {
    const metrics = new GatewayMetrics(NOTHING)
    metrics.requestEnded('/api/zones/:id', 'GET', { status: 200, cutShort: false, ms: 12.5 })
    metrics.ofBackend('default').backendResponded('/api/*', 0.01)
    metrics.ofBackend('default').backendFailed(null)
    metrics.rejected('NOT_FOUND')

    const text = await metrics.text()

    const declared = text.match(/^# TYPE \S+/gm) ?? []
    t.equal(new Set(declared).size, declared.length, 'every name is declared once')
    t.ok(text.endsWith('\n'))
    const label = '[a-z_]+="(?:[^"\\\\\\n]|\\\\["\\\\n])*"'
    const sample = new RegExp(`^[a-z0-9_]+(?:\\{${label}(?:,${label})*\\})? -?(?:[0-9.e+-]+|\\+Inf|Nan)$`)
    t.same(
      text
        .split('\n')
        .filter((line) => line !== '' && !/^# (?:HELP|TYPE) [a-z0-9_]+ \S/.test(line) && !sample.test(line)),
      []
    )
  })
})

interface TestApp {
  readonly url: string
  readonly app: FastifyInstance
  readonly metrics: GatewayMetrics
  /** Resolves when that many requests are pending at a backend that does not respond. */
  pending(count: number): Promise<void>
  /** The counts, after all pending requests have ended. */
  counts(): Promise<Record<string, number>>
}

/** Requests with every possible outcome. */
const startApp = async (
  t: Teardown,
  readers: readonly string[] = ['loopback'],
  host = '127.0.0.1'
): Promise<TestApp> => {
  const metrics = new GatewayMetrics(NOTHING)
  const requestEnded = recordRequests(metrics, new SecretPaths([], []))
  const openReplies = new OpenReplies((reply) => requestEnded(reply, true))
  const app: FastifyInstance = Fastify({
    frameworkErrors: (_error, _request, reply) => {
      trackRejected(reply, { openReplies, requestEnded })
      reply.raw.writeHead(400).end()
    }
  })
  await app.register(requestContext)
  await app.register(requestLog, { openReplies, requestEnded })
  app.addHook('onRequest', async (request) => {
    if (request.headers['x-refuse'] !== undefined) throw new GatewayError('CSRF_MISMATCH')
  })
  const sendError = errorSender((code) => metrics.rejected(code))
  app.setErrorHandler((error, _request, reply) => sendError(error, reply))
  app.setNotFoundHandler((_request, reply) => sendError(new GatewayError('NOT_FOUND'), reply))

  let waiting = 0
  let arrived = (): void => undefined
  app.get('/pending', (_request, reply) => {
    reply.hijack()
    waiting += 1
    arrived()
  })
  app.get('/half', (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-length': '8' }).write('half')
  })
  app.get('/api/zones/:id', async () => 'zone')
  app.get('/names/:name', async () => 'name')
  app.get('/fails', async () => {
    throw new Error('on purpose')
  })
  app.get('/not-modified', async (_request, reply) => reply.code(304).send())
  app.all('/api/*', async () => 'any')
  metricsRoute(app, { metrics, allowed: new AddressSet(readers) })
  const ends: Promise<unknown>[] = []
  app.server.on('connection', (socket) => ends.push(once(socket, 'close')))
  await app.listen({ host, port: 0 })
  t.teardown(() => {
    app.server.closeAllConnections()
    return app.close()
  })

  const port = portOf(app.server)
  return {
    url: `http://127.0.0.1:${port}`,
    app,
    metrics,
    pending: (count) =>
      new Promise((resolve) => {
        arrived = () => waiting === count && resolve()
        arrived()
      }),
    async counts() {
      await app.close()
      await Promise.all(ends)
      return countsOf(metrics, REQUESTS)
    }
  }
}

interface RequestCase {
  readonly title: string
  readonly path: string
  readonly message?: Message
  readonly counted: readonly [route: string, method: string, status: string]
}

const REQUEST_CASES: readonly RequestCase[] = [
  { title: 'a read', path: '/api/zones/7', counted: ['/api/zones/:id', 'GET', '2xx'] },
  { title: 'a query', path: '/api/zones/7?a=b', counted: ['/api/zones/:id', 'GET', '2xx'] },
  { title: 'a HEAD', path: '/api/zones/7', message: { method: 'HEAD' }, counted: ['/api/zones/:id', 'HEAD', '2xx'] },
  { title: 'the catch-all', path: '/api/a/b/c', counted: ['/api/*', 'GET', '2xx'] },
  {
    title: 'a change with a body',
    path: '/api/a',
    message: { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{}' },
    counted: ['/api/*', 'PUT', '2xx']
  },
  { title: 'a response without content', path: '/not-modified', counted: ['/not-modified', 'GET', '3xx'] },
  { title: 'a failure', path: '/fails', counted: ['/fails', 'GET', '5xx'] },
  {
    title: 'a rejection by a hook',
    path: '/api/zones/7',
    message: { headers: { 'x-refuse': '1' } },
    counted: ['/api/zones/:id', 'GET', '4xx']
  },
  { title: 'an unknown page', path: '/nowhere', counted: ['none', 'GET', '4xx'] },
  {
    title: 'a method that no route has',
    path: '/fails',
    message: { method: 'POST' },
    counted: ['none', 'POST', '4xx']
  },
  {
    title: 'an unknown method',
    path: '/api/zones/7',
    message: { method: 'PROPFIND' },
    counted: ['none', 'OTHER', '4xx']
  },
  { title: 'a path that the router cannot read', path: '/api/%zz', counted: ['none', 'GET', '4xx'] },
  {
    title: 'a parameter that is too long',
    path: `/names/${'a'.repeat(200)}`,
    counted: ['none', 'GET', '4xx']
  },
  { title: 'a reading of the numbers', path: '/metrics', counted: ['/metrics', 'GET', '2xx'] }
]

const sample = (route: string, method: string, status: string): string =>
  `{route="${route}",method="${method}",status="${status}"}`

t.test('request counts', async (t) => {
  for (const { title, path, message, counted } of REQUEST_CASES) {
    t.test(`a request is counted once, under its route: ${title}`, async (t) => {
      const { url, counts } = await startApp(t)

      await send(url, path, message)

      t.same(await counts(), { [sample(...counted)]: 1 })
    })
  }

  t.test('all paths of a catch-all have one label', async (t) => {
    const { url, counts } = await startApp(t)

    for (let id = 0; id < 50; id++) await send(url, `/api/unknown/${id}`)

    t.same(await counts(), { [sample('/api/*', 'GET', '2xx')]: 50 })
  })

  t.test('every request on a connection is counted', async (t) => {
    const { url, counts } = await startApp(t)

    await sendRaw(
      url,
      ['/api/zones/1', '/nowhere', '/api/zones/2']
        .map((path, index) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${index === 2 ? 'Connection: close\r\n' : ''}\r\n`)
        .join('')
    )

    t.same(await counts(), { [sample('/api/zones/:id', 'GET', '2xx')]: 2, [sample('none', 'GET', '4xx')]: 1 })
  })

  t.test('a request is counted as cut if the client disconnects before the response', async (t) => {
    const { url, counts, pending } = await startApp(t)
    const request = httpRequest(`${url}/pending`, { agent: false }).end()
    // Expected: there is no response.
    request.on('error', () => undefined)
    await pending(1)

    request.destroy()

    t.same(await counts(), { [sample('/pending', 'GET', 'cut')]: 1 })
  })

  t.test('a request is counted as cut if the client disconnects during the response', async (t) => {
    const { url, counts } = await startApp(t)
    const request = httpRequest(`${url}/half`, { agent: false }).end()
    const response = await responseOf(request)
    for (const end of [request, response]) end.on('error', () => undefined)
    await once(response, 'data')

    request.destroy()

    t.same(await counts(), { [sample('/half', 'GET', 'cut')]: 1 })
  })

  t.test('a pipelined request is counted as cut if the connection breaks', async (t) => {
    const { url, counts, pending } = await startApp(t)
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('GET /pending HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20))
    await pending(20)

    socket.destroy()

    t.same(await counts(), { [sample('/pending', 'GET', 'cut')]: 20 })
  })

  t.test('the duration of a request is recorded', async (t) => {
    const { url, counts, metrics } = await startApp(t)
    const before = performance.now()

    await send(url, '/api/zones/7')

    await counts()
    const samples = await samplesOf(metrics)
    const seconds = samples.get(`${DURATION}_sum{route="/api/zones/:id",method="GET"}`) ?? 0
    t.ok(seconds > 0)
    t.ok(seconds <= (performance.now() - before) / 1000)
    t.equal(samples.get(`${DURATION}_count{route="/api/zones/:id",method="GET"}`), 1)
  })
})

interface Reader {
  readonly client: string
  readonly allowed: readonly string[]
  readonly headers?: Record<string, string>
  readonly may: boolean
}

const READERS: readonly Reader[] = [
  { client: 'a peer on this machine', allowed: ['loopback'], may: true },
  { client: 'a peer in one of the ranges', allowed: ['10.0.0.0/8', '127.0.0.0/8'], may: true },
  { client: 'a peer that is allowed alone', allowed: ['127.0.0.1'], may: true },
  { client: 'a peer in none of the ranges', allowed: ['10.0.0.0/8', '::1'], may: false },
  { client: 'any client if no address is allowed', allowed: [], may: false },
  {
    client: 'a peer that says it is another',
    allowed: ['10.0.0.0/8'],
    headers: { 'x-forwarded-for': '10.0.0.1', 'x-real-ip': '10.0.0.1' },
    may: false
  },
  {
    client: 'a client behind a proxy on this machine',
    allowed: ['loopback'],
    headers: { 'x-forwarded-for': '203.0.113.9' },
    may: false
  },
  {
    client: 'a client behind a proxy that claims to be on this machine',
    allowed: ['loopback'],
    headers: { 'X-Forwarded-For': '127.0.0.1' },
    may: false
  },
  {
    client: 'a client behind a proxy that does not forward its address',
    allowed: ['loopback'],
    headers: { 'x-forwarded-for': '' },
    may: false
  },
  {
    client: 'a client behind a proxy that sends Forwarded',
    allowed: ['loopback'],
    headers: { forwarded: 'for=127.0.0.1' },
    may: false
  }
]

t.test('/metrics', async (t) => {
  for (const { client, allowed, headers = {}, may } of READERS) {
    t.test(`/metrics is ${may ? 'served to' : '404 for'} ${client}`, async (t) => {
      const { url } = await startApp(t, allowed)

      const response = await send(url, '/metrics', { headers })

      if (may) {
        t.equal(response.status, 200)
        t.equal(response.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
        t.equal(response.headers['cache-control'], 'no-store')
        t.match(response.body, '\ngateway_in_flight 0\n')
        return
      }
      const unknown = await send(url, '/metricz', { headers })
      t.equal(response.status, 404)
      t.equal(response.code, 'NOT_FOUND')
      t.same(withoutIdentity(response), withoutIdentity(unknown), 'the response is that of an unknown page')
    })
  }

  t.test('/metrics is served to an IPv4 loopback peer of a dual-stack socket', async (t) => {
    const { url } = await startApp(t, ['loopback'], '::')

    t.equal((await send(url, '/metrics')).status, 200)
  })

  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    t.test(`/metrics does not accept ${method}`, async (t) => {
      const { url } = await startApp(t)

      t.equal((await send(url, '/metrics', { method })).code, 'NOT_FOUND')
    })
  }

  t.test('/metrics contains the counts', async (t) => {
    const { url, metrics } = await startApp(t)
    metrics.requestEnded('/api/*', 'GET', { status: 200, cutShort: false, ms: 1 })

    const response = await send(url, '/metrics')

    t.match(response.body, `${REQUESTS}${sample('/api/*', 'GET', '2xx')} 1\n`)
  })
})

/** A response without the headers that always differ. */
const withoutIdentity = ({ status, headers, json }: Awaited<ReturnType<typeof send>>) => {
  const { date: _date, ...rest } = headers
  return { status, headers: rest, body: { ...json(), requestId: '' } }
}

const MAX_READINGS = 200

/** Reads /metrics until it has all these samples, because requests are counted after their response. */
const readUntil = async ({ send }: TestGateway, samples: readonly string[]): Promise<string[]> => {
  let missing = [...samples]
  for (let reading = 0; reading < MAX_READINGS && missing.length > 0; reading++) {
    const { body } = await send('/metrics')
    missing = samples.filter((sample) => !body.includes(`\n${sample}\n`))
  }
  return missing
}

interface GatewayRequestCase {
  readonly title: string
  readonly env?: Record<string, string>
  readonly request: (gateway: TestGateway) => Promise<unknown>
  readonly samples: readonly string[]
}

const GATEWAY_REQUESTS: readonly GatewayRequestCase[] = [
  {
    title: 'a typed route',
    request: ({ send }) => send('/api/zones/7?a=b'),
    samples: [
      `${REQUESTS}${sample('/api/zones/:id', 'GET', '2xx')} 1`,
      `${DURATION}_count{route="/api/zones/:id",method="GET"} 1`,
      'gateway_backend_duration_seconds_count{route="/api/zones/:id"} 1'
    ]
  },
  {
    title: 'the catch-all',
    request: ({ send }) => send('/api/unknown/7'),
    samples: [
      `${REQUESTS}${sample('/api/*', 'GET', '2xx')} 1`,
      'gateway_backend_duration_seconds_count{route="/api/*"} 1'
    ]
  },
  {
    title: 'a page of our own',
    request: ({ send }) => send('/api/health'),
    samples: [`${REQUESTS}${sample('/api/health', 'GET', '2xx')} 1`]
  },
  {
    title: 'an unknown page',
    request: ({ send }) => send('/nowhere'),
    samples: [`${REQUESTS}${sample('none', 'GET', '4xx')} 1`, 'gateway_refusals_total{code="NOT_FOUND"} 1']
  },
  {
    title: 'a change without a CSRF token',
    request: ({ send }) => send('/api/zones', { method: 'POST' }),
    samples: [`${REQUESTS}${sample('/api/zones', 'POST', '4xx')} 1`, 'gateway_refusals_total{code="CSRF_MISMATCH"} 1']
  },
  {
    title: 'a read without a token',
    request: ({ send }) => send('/api/admin/users'),
    samples: ['gateway_refusals_total{code="UNAUTHENTICATED"} 1']
  },
  {
    title: 'an ambiguous path',
    request: ({ send }) => send('/api//zones'),
    samples: ['gateway_refusals_total{code="AMBIGUOUS_PATH"} 1']
  },
  {
    title: 'a path that cannot be decoded',
    request: ({ send }) => send('/api/%zz'),
    samples: ['gateway_refusals_total{code="AMBIGUOUS_PATH"} 1']
  },
  {
    title: 'bytes that are not HTTP',
    request: ({ url }) => sendRaw(url, 'hello there\r\n\r\n'),
    samples: ['gateway_refusals_total{code="MALFORMED_REQUEST"} 1']
  },
  {
    title: 'an expectation that cannot be met',
    request: ({ url }) => sendRaw(url, 'GET /api/zones HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n'),
    samples: ['gateway_refusals_total{code="EXPECTATION_FAILED"} 1']
  },
  {
    title: 'a backend that is gone',
    env: { BACKEND_URL: 'http://127.0.0.1:1' },
    request: ({ send }) => send('/api/zones'),
    samples: [
      `${REQUESTS}${sample('/api/zones', 'GET', '5xx')} 1`,
      'gateway_refusals_total{code="BACKEND_UNREACHABLE"} 1',
      'gateway_backend_errors_total{code="ECONNREFUSED"} 1'
    ]
  },
  {
    title: 'an attempt to sign in',
    request: ({ send }) => send('/api/auth/login', { method: 'POST' }),
    samples: ['gateway_login_limit_keys 1']
  },
  {
    title: 'an audit file that cannot be written',
    env: { AUDIT_LOG_FILE: '/dev/null/audit.jsonl' },
    request: async () => undefined,
    samples: ['gateway_audit_fallback 1', 'gateway_audit_dropped_total 0']
  }
]

const BACKEND_ERROR = /\ngateway_backend_errors_total\{.*\} [1-9]/

t.test('/metrics of a running gateway', async (t) => {
  for (const { title, env, request, samples } of GATEWAY_REQUESTS) {
    t.test(`/metrics counts ${title}`, async (t) => {
      const gateway = await startGateway(t, { ...(env && { env }) })

      await request(gateway)

      t.same(await readUntil(gateway, samples), [])
    })
  }

  t.test('gateway_in_flight counts a pending request until the client disconnects', async (t) => {
    const gateway = await startGateway(t)
    const socket = await hold(gateway, 5)

    t.same(await readUntil(gateway, ['gateway_in_flight 5']), [])
    socket.destroy()

    t.same(
      await readUntil(gateway, ['gateway_in_flight 0', `${REQUESTS}${sample('/api/zones', 'GET', 'cut')} 5`]),
      [],
      'those that waited behind another too'
    )
    t.notMatch((await gateway.send('/metrics')).body, BACKEND_ERROR, 'it is not counted as an error of the backend')
  })

  t.test('a client that disconnects during its login is not counted as an error of the backend', async (t) => {
    const gateway = await startGateway(t)
    const arrived = new Promise<void>((resolve) => {
      gateway.backend.respond = () => resolve()
    })
    const headers = { 'content-type': 'application/json' }
    const login = browse(gateway.url, '/api/auth/login', { method: 'POST', headers })
    login.end(JSON.stringify({ email: 'operator@example.com', password: 'secret' }))
    await arrived
    login.destroy()

    t.same(await readUntil(gateway, [`${REQUESTS}${sample('/api/auth/login', 'POST', 'cut')} 1`]), [])
    t.notMatch((await gateway.send('/metrics')).body, BACKEND_ERROR)
  })
})

/** That many pipelined requests on one connection, all pending at the backend. */
const hold = async ({ url, backend }: TestGateway, count: number) => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const allThere = new Promise<void>((resolve) => {
    backend.respond = () => backend.requests.length === count && resolve()
  })
  socket.write('GET /api/zones HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count))
  await allThere
  return socket
}

t.test('every error code has a count of zero at start, so that the first rejection is an increase', async (t) => {
  const samples = await samplesOf(new GatewayMetrics(NOTHING))
  for (const code of GATEWAY_ERROR_CODES) t.equal(samples.get(`gateway_refusals_total{code="${code}"}`), 0, code)
})
