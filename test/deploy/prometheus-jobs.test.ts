import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { send } from '../helper/http.js'
import { startBackend } from '../helper/recording-backend.js'
import { NEEDS_HELM, plainManifests } from './helm-chart.js'
import { type Manifest, manifestOf } from './kubernetes-manifests.js'
import { PROGRAMS } from './program-settings.js'
import { runGateway, runRelay } from './programs.js'
import { changed, shipped } from './shipped.js'
import { startTool } from './tool.js'

type RelabelConfigs = readonly Readonly<Record<string, unknown>>[]

/** A scrape configuration for these pods, with the labels that service discovery in Kubernetes would add. */
const scrapeConfig = (program: string, address: string, relabel_configs: RelabelConfigs) => ({
  job_name: `discovered ${program}`,
  relabel_configs,
  static_configs: [
    {
      targets: [address],
      labels: {
        __meta_kubernetes_pod_name: `gatehouse-${program}-5d4f7`,
        __meta_kubernetes_pod_container_port_name: 'http',
        __meta_kubernetes_pod_label_app_kubernetes_io_name: 'gatehouse',
        __meta_kubernetes_pod_label_app_kubernetes_io_component: program
      }
    }
  ]
})

/** The relabelling of the PodMonitor of a program, in the notation of Prometheus. */
const podMonitorRelabelling = (all: readonly Manifest[], program: string): RelabelConfigs => {
  const [{ relabelings }] = manifestOf(all, 'PodMonitor', `gatehouse-${program}`).spec.podMetricsEndpoints
  return relabelings.map((one: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(
      Object.entries(one).map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value])
    )
  )
}

type Addresses = Readonly<Record<(typeof PROGRAMS)[number], string>>

const discoveredPods = (relabelling: (program: string) => RelabelConfigs) => (addresses: Addresses) =>
  PROGRAMS.map((program) => scrapeConfig(program, addresses[program], relabelling(program)))

interface Series {
  readonly metric: { readonly job: string; readonly instance: string }
  readonly value: readonly [number, string]
}

t.testdir()
const [gateway, relay] = await Promise.all([runGateway(t, (await startBackend(t)).url), runRelay(t, {})])
const addresses: Addresses = { gateway: gateway.address, relay: relay.address }

/** The results of a query to a real Prometheus that scrapes both programs. */
const scrapedSeries = async (
  t: Test,
  scrapeConfigs: (addresses: Addresses, folder: string) => readonly unknown[]
): Promise<Series[]> => {
  const folder = t.testdir()
  writeFileSync(
    join(folder, 'prometheus.yml'),
    JSON.stringify({
      global: { scrape_interval: '1s' },
      scrape_configs: scrapeConfigs(addresses, folder)
    })
  )
  const url = `http://127.0.0.1:${await freePort()}`
  await startTool(t, 'prometheus', [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=${new URL(url).host}`
  ])
  const query = async (): Promise<Series[]> => {
    // The selector of the alert ProgramDown.
    const path = `/api/v1/query?query=${encodeURIComponent('up{job=~"gatehouse-.*"}')}`
    const { status, body } = await send(url, path).catch(() => ({ status: 0, body: '' }))
    return status === 200 ? JSON.parse(body).data.result : []
  }
  await eventually(async () => (await query()).filter(({ value }) => value[1] === '1').length === 2, {
    label: 'both programs scraped'
  })
  return query()
}

t.test(
  'prometheus.yml scrapes the targets of its file with the job names that alerts and dashboards select',
  async (t) => {
    const series = await scrapedSeries(t, (addresses, folder) => {
      const targets = changed(shipped('deploy/prometheus/gatehouse-targets.yml'), [
        ['127.0.0.1:3000', addresses.gateway],
        ['127.0.0.1:8100', addresses.relay]
      ])
      writeFileSync(join(folder, 'gatehouse-targets.yml'), targets)
      return parse(shipped('deploy/prometheus/prometheus.yml')).scrape_configs
    })
    t.same(
      jobsOf(series).map(({ job }) => job),
      ['gatehouse-gateway', 'gatehouse-relay']
    )
  }
)

const EXPECTED = [
  { job: 'gatehouse-gateway', instance: 'gatehouse-gateway-5d4f7' },
  { job: 'gatehouse-relay', instance: 'gatehouse-relay-5d4f7' }
]

const jobsOf = (series: readonly Series[]) =>
  series
    .map(({ metric: { job, instance } }) => ({ job, instance }))
    .toSorted((one, other) => one.job.localeCompare(other.job))

t.test('PodMonitors give pods the job names that alerts and dashboards select', NEEDS_HELM, async (t) => {
  const all = (await plainManifests())('monitoring')
  const pods = discoveredPods((program) => podMonitorRelabelling(all, program))
  t.same(jobsOf(await scrapedSeries(t, pods)), EXPECTED)
})

t.test('deploy/prometheus/kubernetes.yml gives pods the job names that alerts and dashboards select', async (t) => {
  const [{ relabel_configs }] = parse(shipped('deploy/prometheus/kubernetes.yml')).scrape_configs
  t.same(
    jobsOf(
      await scrapedSeries(
        t,
        discoveredPods(() => relabel_configs)
      )
    ),
    EXPECTED
  )
})
