import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { createLogger } from '../src/shared/logger.js'
import { INSTALL_OPEN_TELEMETRY, openTracer } from '../src/shared/open-tracer.js'
import { traceIdOf } from '../src/shared/tracing.js'
import { PUBLISH_KEY, type Running, relayTokenOf, runGateway, runRelay } from './all/deploy/programs.js'
import { urlOf } from './helper/address.js'
import { eventually } from './helper/eventually.js'
import { browserHeaders, startGateway } from './helper/gateway.js'
import { send } from './helper/http.js'
import { type CollectedSpan, type OtlpCollector, startCollector } from './helper/otlp-collector.js'
import { startProgram } from './helper/program.js'
import { openClient } from './helper/raw-client.js'
import { startBackend } from './helper/recording-backend.js'
import { startRedis } from './helper/redis.js'

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const CLIENT_SPAN = 'b7ad6b7169203331'
const TRACEPARENT = `00-${TRACE_ID}-${CLIENT_SPAN}-01`

/** Exports at once instead of after five seconds. */
const tracedBy = (url: string) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '20' })

const lines = ({ program }: Running): Record<string, unknown>[] =>
  program.stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

const subscribe = async (t: Test, { url }: Running, channel: string) => {
  const client = await openClient(t, url)
  await client.request({ id: 1, connect: { token: relayTokenOf('42') } })
  await client.request({ id: 2, subscribe: { channel } })
  return client
}

const publish = (url: string, headers: Readonly<Record<string, string>>, channel = 'floor:7') =>
  send(url, '/api/publish', {
    method: 'POST',
    headers: { 'x-api-key': PUBLISH_KEY, ...headers },
    body: JSON.stringify({ channel, data: { n: 1 } })
  })

const isOf = (service: string, kind: CollectedSpan['kind'], traceId: string) => (span: CollectedSpan) =>
  span.service === service && span.kind === kind && span.traceId === traceId

const findSpan = (
  collector: OtlpCollector,
  service: string,
  kind: CollectedSpan['kind'],
  traceId = TRACE_ID
): Promise<CollectedSpan> => collector.find(isOf(service, kind, traceId), `${service} ${kind}`)

t.test('a trace leads from the browser through gateway, backend and relay to the fan-out', async (t) => {
  t.testdir()
  const collector = await startCollector(t)
  const backend = await startBackend(t)
  const [relay, gateway] = await Promise.all([
    runRelay(t, {}, tracedBy(collector.url)),
    runGateway(t, backend.url, tracedBy(collector.url))
  ])
  backend.respond = async ({ headers }, response) => {
    await publish(relay.url, { traceparent: String(headers.traceparent) })
    response.end('{}')
  }
  const client = await subscribe(t, relay, 'floor:7')

  const headers = { ...browserHeaders(), traceparent: TRACEPARENT, tracestate: 'a=1' }
  t.equal((await send(gateway.url, '/api/zones?token=secret', { headers })).status, 200)
  await client.next()

  const request = await findSpan(collector, 'gatehouse-gateway', 'server')
  const call = await findSpan(collector, 'gatehouse-gateway', 'client')
  const api = await findSpan(collector, 'gatehouse-relay', 'server')
  const publication = await findSpan(collector, 'gatehouse-relay', 'producer')
  const delivery = await findSpan(collector, 'gatehouse-relay', 'consumer')

  t.test('every span is a child of the one before it', async (t) => {
    t.same(
      [request, call, api, publication, delivery].map(({ parentId }) => parentId),
      [CLIENT_SPAN, request.spanId, call.spanId, api.spanId, publication.spanId]
    )
    for (const { durationMs, isError } of [request, call, api, publication, delivery]) t.ok(durationMs >= 0 && !isError)
  })

  t.test('spans have the names and attributes of the semantic conventions', async (t) => {
    t.match(request, {
      name: 'GET /api/zones',
      attributes: {
        'http.request.method': 'GET',
        'http.route': '/api/zones',
        'url.path': '/api/zones',
        'http.response.status_code': 200,
        'client.address': '127.0.0.1'
      }
    })
    t.match(call, {
      name: 'GET',
      attributes: { 'server.address': '127.0.0.1', 'http.response.status_code': 200 }
    })
    t.match(api, { name: 'POST /api/publish', attributes: { 'http.response.status_code': 200 } })
    t.match(publication, { name: 'publish', attributes: { 'messaging.destination.name': 'floor:7' } })
    t.match(delivery, {
      name: 'deliver floor',
      attributes: { 'messaging.destination.name': 'floor:7', 'gatehouse.subscribers': 1 }
    })
    t.notMatch(JSON.stringify(collector.spans), /secret/, 'spans contain no query')
  })

  t.test('the backend receives the span of its request and the tracestate', async (t) => {
    t.equal(backend.requests[0]?.headers.traceparent, `00-${TRACE_ID}-${call.spanId}-01`)
    t.equal(backend.requests[0]?.headers.tracestate, 'a=1')
  })

  t.test('the request log has the trace id', async () => {
    await eventually(() => lines(gateway).find(({ msg, traceId }) => msg === 'request' && traceId === TRACE_ID))
  })

  t.test('probes, metrics and unauthenticated API requests have no spans', async (t) => {
    const before = collector.spans.length
    await send(gateway.url, '/api/health', { headers: { traceparent: TRACEPARENT } })
    await send(gateway.url, '/metrics')
    await publish(relay.url, { 'x-api-key': 'wrong', traceparent: TRACEPARENT })
    await send(gateway.url, '/api/zones', { headers: browserHeaders() })
    await eventually(() => collector.spans.length > before + 1)
    t.ok(collector.spans.slice(before).every(({ traceId }) => traceId !== TRACE_ID))
  })

  t.test('failed requests are marked as errors', async (t) => {
    const traceId = '1'.repeat(32)
    backend.respond = (_request, response) => response.destroy()
    await send(gateway.url, '/api/zones', {
      headers: { ...browserHeaders(), traceparent: `00-${traceId}-${CLIENT_SPAN}-01` }
    })
    t.match(await findSpan(collector, 'gatehouse-gateway', 'server', traceId), {
      isError: true,
      attributes: { 'error.type': 'BACKEND_UNREACHABLE', 'http.response.status_code': 502 }
    })
    t.match(await findSpan(collector, 'gatehouse-gateway', 'client', traceId), { isError: true })
    await publish(relay.url, { traceparent: `00-${traceId}-${CLIENT_SPAN}-01` }, 'nowhere:1')
    t.match(await findSpan(collector, 'gatehouse-relay', 'producer', traceId), {
      isError: true,
      attributes: { 'error.type': '102' }
    })
  })
})

t.test('a fan-out at another process is connected with the publication', async (t) => {
  const redis = await startRedis(t)
  const ENVIRONMENTS = {
    'two relays on one Redis': { RELAY_ENGINE: 'redis', REDIS_URL: redis.url },
    'two workers': { RELAY_WORKERS: '2' }
  } as const
  for (const [title, env] of Object.entries(ENVIRONMENTS)) {
    t.test(`a fan-out at another process is connected with the publication: ${title}`, async (t) => {
      t.testdir()
      const collector = await startCollector(t)
      const start = () => runRelay(t, {}, { ...tracedBy(collector.url), ...env })
      const [relay, other = relay] = await Promise.all('REDIS_URL' in env ? [start(), start()] : [start()])
      // Workers receive connections in rotation, so both have a subscriber.
      const clients = [await subscribe(t, other, 'floor:7'), await subscribe(t, other, 'floor:7')]
      await publish(relay.url, { traceparent: TRACEPARENT })
      for (const client of clients) await client.next()
      const publication = await findSpan(collector, 'gatehouse-relay', 'producer')
      const delivery = await findSpan(collector, 'gatehouse-relay', 'consumer')
      t.equal(delivery.parentId, publication.spanId)
    })
  }
})

t.test('the SDK reads the standard OTEL_… settings', async (t) => {
  const collector = await startCollector(t)
  const backend = await startBackend(t)
  const gateway = await runGateway(t, backend.url, {
    ...tracedBy(collector.url),
    OTEL_SERVICE_NAME: 'edge',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc',
    OTEL_TRACES_SAMPLER: 'parentbased_always_on'
  })

  t.test('an unsampled trace is passed on and not exported', async (t) => {
    const headers = { ...browserHeaders(), traceparent: TRACEPARENT.replace(/01$/, '00') }
    await send(gateway.url, '/api/zones', { headers })
    t.match(backend.requests[0]?.headers.traceparent, new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-00$`))
    await send(gateway.url, '/api/zones', { headers: browserHeaders() })
    await eventually(() => collector.spans.length > 0)
    t.ok(collector.spans.every(({ traceId }) => traceId !== TRACE_ID))
  })

  t.test('service name and headers are those of the settings', async (t) => {
    await send(gateway.url, '/api/zones', { headers: { ...browserHeaders(), traceparent: TRACEPARENT } })
    await findSpan(collector, 'edge', 'server')
    t.equal(collector.headers.authorization, 'Bearer abc')
  })
})

t.test('a collector that fails does not affect requests or the exit', async (t) => {
  // Accepts connections and never responds.
  const silent = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  for (const [failure, url] of [
    ['refuses connections', 'http://127.0.0.1:1'],
    ['does not respond', urlOf(silent)]
  ] as const) {
    t.test(`a collector that ${failure} does not affect requests or the exit`, async (t) => {
      const backend = await startBackend(t)
      const gateway = await runGateway(t, backend.url, { ...tracedBy(url), OTEL_BSP_EXPORT_TIMEOUT: '100' })
      for (let request = 0; request < 20; request++)
        t.equal((await send(gateway.url, '/api/zones', { headers: browserHeaders() })).status, 200)
      await eventually(() => lines(gateway).find(({ msg }) => msg === 'trace export failed'))
      t.equal((await send(gateway.url, '/api/zones', { headers: browserHeaders() })).status, 200)
      gateway.program.signal('SIGTERM')
      t.same(await gateway.program.exited, { code: 0, signal: null })
      t.equal(lines(gateway).filter(({ msg }) => msg === 'trace export failed').length, 1)
    })
  }
})

t.test('tracing is off without an endpoint', async (t) => {
  const log = createLogger({ name: 'test', level: 'silent' })
  const program = { serviceName: 'test', version: '1', log }
  const OFF: readonly Readonly<Record<string, string>>[] = [
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_SDK_DISABLED: 'true' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_TRACES_EXPORTER: 'none' }
  ]
  for (const environment of OFF) t.equal(await openTracer(environment, program), null)
  await import('../src/gateway/app.js')
  await import('../src/relay/app.js')
  const loaded = Object.keys(createRequire(import.meta.url).cache)
  t.ok(loaded.some((path) => path.includes('prom-client')))
  t.same(
    // prom-client loads the API, which does nothing without the SDK.
    loaded.filter((path) => path.includes('@opentelemetry') && !path.includes('@opentelemetry/api/')),
    [],
    'the SDK is not loaded'
  )
})

t.test('the request log has the trace id of the client if tracing is off', async (t) => {
  const { send, logs, backend } = await startGateway(t)
  await send('/api/zones', { headers: { ...browserHeaders(), traceparent: TRACEPARENT } })
  await eventually(() => logs.find(({ msg, traceId }) => msg === 'request' && traceId === TRACE_ID))
  t.equal(backend.requests[0]?.headers.traceparent, TRACEPARENT)
})

for (const [env, line] of [
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL'],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    'OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf'
  ]
] as const) {
  t.test(`a setting of tracing is invalid: ${line}`, async (t) => {
    const log = createLogger({ name: 'test', level: 'silent' })
    await t.rejects(openTracer(env, { serviceName: 'test', version: '1', log }), { errors: [line] })
  })
}

t.test('a relay without the OpenTelemetry packages stops with one line', async (t) => {
  const HIDE_PACKAGES = `export const resolve = (name, context, next) => {
    if (name.startsWith('@opentelemetry/')) throw Object.assign(new Error('not found'), { code: 'ERR_MODULE_NOT_FOUND' })
    return next(name, context)
  }`
  const hide = `import { register } from 'node:module'; register(${JSON.stringify(dataUrl(HIDE_PACKAGES))})`
  const program = await startProgram(t, 'dist/src/relay/main.js', {
    RELAY_PORT: '0',
    REALTIME_HMAC_SECRET: 'a'.repeat(64),
    REALTIME_API_KEY: 'b'.repeat(64),
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
    NODE_OPTIONS: `--import=${dataUrl(hide)}`
  })
  t.same(await program.exited, { code: 1, signal: null })
  t.equal(
    program.stderr,
    `relay: OTEL_EXPORTER_OTLP_ENDPOINT needs the OpenTelemetry packages: ${INSTALL_OPEN_TELEMETRY}\n`
  )
})

t.test('the printed command installs exact versions of all packages', async (t) => {
  t.match(INSTALL_OPEN_TELEMETRY, /^npm install(?: @opentelemetry\/[a-z-]+@\d+\.\d+\.\d+){5}$/)
})

t.test('traceIdOf accepts valid headers only', async (t) => {
  t.equal(traceIdOf(TRACEPARENT), TRACE_ID)
  t.equal(traceIdOf(`01-${TRACE_ID}-${CLIENT_SPAN}-01-more`), TRACE_ID)
  for (const invalid of [
    undefined,
    '',
    TRACE_ID,
    `ff-${TRACE_ID}-${CLIENT_SPAN}-01`,
    `00-${'0'.repeat(32)}-${CLIENT_SPAN}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `00-${TRACE_ID.toUpperCase()}-${CLIENT_SPAN}-01`,
    [TRACEPARENT, TRACEPARENT]
  ])
    t.equal(traceIdOf(invalid), null)
})

function dataUrl(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`
}
