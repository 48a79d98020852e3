import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { browserHeaders } from '../helper/gateway.js'
import { send } from '../helper/http.js'
import { openClient } from '../helper/raw-client.js'
import { startBackend } from '../helper/recording-backend.js'
import { PUBLISH_KEY, relayTokenOf, runGateway, runRelay } from './programs.js'
import { selectorsOf } from './promql.js'
import { shipped } from './shipped.js'
import { runTool } from './tool.js'

const ALERTS = 'deploy/prometheus/gatehouse-alerts.yml'
const ALERT_TESTS = 'deploy/prometheus/gatehouse-alerts.test.yml'
const DASHBOARDS = ['gateway', 'relay'] as const

interface AlertGroups {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}

const { groups }: AlertGroups = parse(shipped(ALERTS))
const alerts = groups.flatMap(({ rules }) => rules)

interface Dashboard {
  readonly uid: string
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[]
}

const dashboard = (name: string): Dashboard => JSON.parse(shipped(`deploy/grafana/${name}.json`))
const expressionsOf = ({ panels }: Dashboard): string[] =>
  panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

/** Label names by sample name; empty for a metric that has no sample yet. */
type Metrics = ReadonlyMap<string, ReadonlySet<string>>

const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count']
}

const metricsOf = (page: string): Metrics => {
  const metrics = new Map<string, Set<string>>()
  for (const [, name = '', type = ''] of page.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    for (const suffix of SUFFIXES[type] ?? ['']) metrics.set(name + suffix, new Set())
  }
  for (const [, name = '', labels = ''] of page.matchAll(/^(\w+)\{([^}]*)\} /gm)) {
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) metrics.get(name)?.add(label)
  }
  return metrics
}

/** The metrics of a gateway with all features, and with successful, rejected and failed requests. */
const gatewayPage = async (t: Test): Promise<string> => {
  const backend = await startBackend(t)
  const files = t.testdir({
    'limits.json': JSON.stringify([{ name: 'all', paths: ['/'], by: 'user', rate: 1000 }]),
    'upstreams.json': JSON.stringify([
      { name: 'chat', url: 'http://127.0.0.1:4100', paths: ['/chat'], websocket: true }
    ])
  })
  const { url } = await runGateway(t, backend.url, {
    RELAY_UPSTREAM: 'http://127.0.0.1:8100',
    GATEWAY_INTERNAL_PORT: '0',
    GATEWAY_INTERNAL_KEY: 'the key of the internal listener, 0123456789'.replaceAll(/[ ,]/g, '-'),
    GATEWAY_LIMITS: join(files, 'limits.json'),
    GATEWAY_UPSTREAMS: join(files, 'upstreams.json')
  })
  await send(url, '/api/zones', { headers: browserHeaders() })
  await send(url, '/api/zones', { method: 'POST' })
  backend.respond = (_request, response) => response.destroy()
  await send(url, '/api/zones', { headers: browserHeaders() })
  return (await send(url, '/metrics')).body
}

/** The metrics of a relay with a subscriber and with rejected requests of every kind. */
const relayPage = async (t: Test): Promise<string> => {
  t.testdir()
  const { url } = await runRelay(t, {})
  const client = await openClient(t, url)
  await client.request({ id: 1, connect: { token: relayTokenOf('42') } })
  await client.request({ id: 2, subscribe: { channel: 'floor:7' } })
  await client.request({ id: 3, subscribe: { channel: 'nowhere:7' } })
  const headers = { 'x-api-key': PUBLISH_KEY }
  for (const channel of ['floor:7', 'nowhere:7'])
    await send(url, '/api/publish', { method: 'POST', headers, body: JSON.stringify({ channel, data: 1 }) })
  const foreign = { origin: 'https://evil.example.net', upgrade: 'websocket', connection: 'upgrade' }
  await send(url, '/connection/websocket', { headers: foreign })
  return (await send(url, '/metrics')).body
}

const familyOf = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, '')

/** Labels that Prometheus adds. */
const PROMETHEUS_LABELS = new Set(['instance', 'job', 'le'])

const errorsOf = (expression: string, metrics: Metrics): string[] => {
  const selectors = selectorsOf(expression)
  if (selectors.length === 0) return [`no metric in ${expression}`]
  return selectors.flatMap(({ metric, labels }) => {
    if (metric === 'up') return []
    const known = metrics.get(metric)
    if (known === undefined) return [`no metric ${metric}`]
    // A metric without samples has no labels yet.
    if (known.size === 0) return []
    return labels
      .filter((label) => !PROMETHEUS_LABELS.has(label) && !known.has(label))
      .map((label) => `${metric} has no ${label}`)
  })
}

t.test('dashboards, alerts and docs use only metrics of the programs', async (t) => {
  const metrics = { gateway: metricsOf(await gatewayPage(t)), relay: metricsOf(await relayPage(t)) }

  for (const name of DASHBOARDS) {
    t.test(`deploy/grafana/${name}.json uses only existing metrics and labels`, async (t) => {
      const { uid } = dashboard(name)
      t.equal(uid, `gatehouse-${name}`)
      const expressions = expressionsOf(dashboard(name))
      t.ok(expressions.length > 20)
      t.same(
        expressions.flatMap((expression) => errorsOf(expression, metrics[name])),
        []
      )
    })
  }

  t.test(`${ALERTS} uses only existing metrics and labels`, async (t) => {
    const all = new Map([...metrics.gateway, ...metrics.relay])
    t.same(
      alerts.flatMap(({ expr }) => errorsOf(expr, all)),
      []
    )
  })

  t.test('docs/reference/operating.md and docs/how-to/troubleshoot.md name only existing metrics', async (t) => {
    t.testdir()
    const { url } = await runRelay(t, {}, { RELAY_WORKERS: '2' })
    const workers = metricsOf((await send(url, '/metrics')).body)
    const names = [
      ...(shipped('docs/reference/operating.md') + shipped('docs/how-to/troubleshoot.md')).matchAll(
        // Without prefixes of names, such as centrifugo_proxy_…
        /\b(?:gateway|centrifugo|relay|gatehouse)_[a-z_]*[a-z](?![a-z_])/g
      )
    ].map(([name]) => name)
    // The docs name a histogram without the suffixes of its samples.
    const known = new Set(
      [...metrics.gateway.keys(), ...metrics.relay.keys(), ...workers.keys()].flatMap((name) => [name, familyOf(name)])
    )
    t.ok(names.length > 20)
    t.same(
      names.filter((name) => !known.has(name)),
      []
    )
  })

  t.test('errorsOf finds unknown metrics and labels', async (t) => {
    t.same(errorsOf('rate(gateway_http_request_total[5m])', metrics.gateway), ['no metric gateway_http_request_total'])
    t.same(errorsOf('sum by (state) (gateway_http_requests_total{code="1"})', metrics.gateway), [
      'gateway_http_requests_total has no state',
      'gateway_http_requests_total has no code'
    ])
  })
})

t.test('Prometheus configuration', async (t) => {
  t.test('promtool accepts the scrape configuration and the alerts', async (t) => {
    // Debian builds promtool without the Kubernetes service discovery, so it cannot check kubernetes.yml;
    // prometheus-jobs.test.ts runs its relabelling.
    t.match(await runTool(t, 'promtool', ['check', 'config', 'deploy/prometheus/prometheus.yml']), 'SUCCESS')
    t.match(await runTool(t, 'promtool', ['check', 'rules', ALERTS]), `SUCCESS: ${alerts.length} rules found`)
  })

  t.test('every alert fires in its test, and none in a healthy system', async (t) => {
    t.match(await runTool(t, 'promtool', ['test', 'rules', ALERT_TESTS]), 'SUCCESS')
    const { tests }: { tests: { name: string }[] } = parse(shipped(ALERT_TESTS))
    t.same(
      tests.map(({ name }) => name).slice(0, -1),
      alerts.map(({ alert }) => alert)
    )
    t.equal(tests.at(-1)?.name, 'a healthy system')
  })

  t.test('promtool accepts the expressions of the dashboards', async (t) => {
    const expressions = DASHBOARDS.flatMap((name) => expressionsOf(dashboard(name)))
    const rules = expressions.map((expr, index) => ({
      record: `panel_${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m')
    }))
    const file = join(t.testdir(), 'panels.yml')
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }))

    t.match(await runTool(t, 'promtool', ['check', 'rules', file]), `SUCCESS: ${rules.length} rules found`)
  })
})
