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

const alerts = (parse(shipped(ALERTS)) as AlertGroups).groups.flatMap(({ rules }) => rules)

interface Dashboard {
  readonly uid: string
  readonly panels: readonly {
    readonly title: string
    readonly gridPos: { readonly x: number; readonly w: number }
    readonly targets?: readonly { readonly expr: string }[]
  }[]
}

const dashboard = (name: string): Dashboard => JSON.parse(shipped(`deploy/grafana/${name}.json`))
const expressionsOf = ({ panels }: Dashboard): string[] =>
  panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

/** Label names by name of sample; those that have not happened yet have none. */
type Numbers = ReadonlyMap<string, ReadonlySet<string>>

const SUFFIXES = { histogram: ['_bucket', '_sum', '_count'], summary: ['', '_sum', '_count'] } as const

const numbersOf = (page: string): Numbers => {
  const numbers = new Map<string, Set<string>>()
  for (const [, name = '', type = ''] of page.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    for (const suffix of SUFFIXES[type as keyof typeof SUFFIXES] ?? ['']) numbers.set(name + suffix, new Set())
  }
  for (const [, name = '', labels = ''] of page.matchAll(/^(\w+)\{([^}]*)\} /gm)) {
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) numbers.get(name)?.add(label)
  }
  return numbers
}

/** The page of a gateway that has answered, refused, and met a backend that is away. */
const gatewayPage = async (t: Test): Promise<string> => {
  const backend = await startBackend(t)
  const { url } = await runGateway(t, backend.url)
  await send(url, '/api/zones', { headers: browserHeaders() })
  await send(url, '/api/zones', { method: 'POST' })
  backend.answer = (_request, response) => response.destroy()
  await send(url, '/api/zones', { headers: browserHeaders() })
  return (await send(url, '/metrics')).body
}

/** The page of a relay with a client that listens, and with everything refused that can be. */
const relayPage = async (t: Test): Promise<string> => {
  t.testdir()
  const { url } = await runRelay(t, {})
  const client = await openClient(t, url)
  await client.ask({ id: 1, connect: { token: relayTokenOf('42') } })
  await client.ask({ id: 2, subscribe: { channel: 'floor:7' } })
  await client.ask({ id: 3, subscribe: { channel: 'nowhere:7' } })
  const headers = { 'x-api-key': PUBLISH_KEY }
  for (const channel of ['floor:7', 'nowhere:7'])
    await send(url, '/api/publish', { method: 'POST', headers, body: JSON.stringify({ channel, data: 1 }) })
  const foreign = { origin: 'https://evil.example.net', upgrade: 'websocket', connection: 'upgrade' }
  await send(url, '/connection/websocket', { headers: foreign })
  return (await send(url, '/metrics')).body
}

const familyOf = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, '')

/** Prometheus itself adds these. */
const OF_PROMETHEUS = new Set(['instance', 'job', 'le'])

const faultsOf = (expression: string, numbers: Numbers): string[] => {
  const selectors = selectorsOf(expression)
  if (selectors.length === 0) return [`no metric in ${expression}`]
  return selectors.flatMap(({ metric, labels }) => {
    if (metric === 'up') return []
    const known = numbers.get(metric)
    if (known === undefined) return [`there is no ${metric}`]
    // what has never happened has no labels yet
    if (known.size === 0) return []
    return labels
      .filter((label) => !OF_PROMETHEUS.has(label) && !known.has(label))
      .map((label) => `${metric} has no ${label}`)
  })
}

t.test('what dashboards and alerts ask for is in the numbers of the running programs', async (t) => {
  const numbers = { gateway: numbersOf(await gatewayPage(t)), relay: numbersOf(await relayPage(t)) }

  for (const name of DASHBOARDS) {
    t.test(`deploy/grafana/${name}.json`, async (t) => {
      const expressions = expressionsOf(dashboard(name))
      t.ok(expressions.length > 20)
      t.same(
        expressions.flatMap((expression) => faultsOf(expression, numbers[name])),
        []
      )
    })
  }

  t.test(ALERTS, async (t) => {
    const all = new Map([...numbers.gateway, ...numbers.relay])
    t.same(
      alerts.flatMap(({ expr }) => faultsOf(expr, all)),
      []
    )
  })

  t.test('docs/reference/operating.md and docs/how-to/troubleshoot.md', async (t) => {
    t.testdir()
    const { url } = await runRelay(t, {}, { RELAY_WORKERS: '2' })
    const workers = numbersOf((await send(url, '/metrics')).body)
    const names = [
      ...(shipped('docs/reference/operating.md') + shipped('docs/how-to/troubleshoot.md')).matchAll(
        /\b(?:gateway|centrifugo|relay)_[a-z_]+/g
      )
    ].map(([name]) => name)
    // a histogram is called by the name that its parts begin with
    const known = new Set(
      [...numbers.gateway.keys(), ...numbers.relay.keys(), ...workers.keys()].flatMap((name) => [name, familyOf(name)])
    )
    t.ok(names.length > 20)
    t.same(
      names.filter((name) => !known.has(name)),
      []
    )
  })

  t.test('and a wrong name or label is noticed', async (t) => {
    t.same(faultsOf('rate(gateway_http_request_total[5m])', numbers.gateway), [
      'there is no gateway_http_request_total'
    ])
    t.same(faultsOf('sum by (state) (gateway_http_requests_total{code="1"})', numbers.gateway), [
      'gateway_http_requests_total has no state',
      'gateway_http_requests_total has no code'
    ])
  })
})

t.test('Prometheus', async (t) => {
  t.test('takes the scrape configuration and the alerts', async (t) => {
    t.match(await runTool(t, 'promtool', ['check', 'config', 'deploy/prometheus/prometheus.yml']), 'SUCCESS')
    t.match(await runTool(t, 'promtool', ['check', 'rules', ALERTS]), `SUCCESS: ${alerts.length} rules found`)
  })

  t.test('fires every alert for what it is meant for, and none on a day like any other', async (t) => {
    t.match(await runTool(t, 'promtool', ['test', 'rules', ALERT_TESTS]), 'SUCCESS')
    const { tests } = parse(shipped(ALERT_TESTS)) as { tests: { name: string }[] }
    t.same(
      tests.map(({ name }) => name).slice(0, -1),
      alerts.map(({ alert }) => alert)
    )
    t.equal(tests.at(-1)?.name, 'a healthy system')
  })

  t.test('understands what the dashboards ask', async (t) => {
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

t.test('dashboards', async (t) => {
  for (const name of DASHBOARDS) {
    t.test(`${name} has panels that fit side by side, each with a name of its own`, async (t) => {
      const { uid, panels } = dashboard(name)
      t.equal(uid, `gatehouse-${name}`)
      t.ok(panels.every(({ gridPos: { x, w } }) => x + w <= 24))
      t.ok(panels.every(({ title }) => title !== ''))
    })
  }
})
