import { AggregatorRegistry, Counter, Registry } from 'prom-client'
import { collectProcessMetrics } from '../../shared/process-metrics.js'
import { withTimeout } from '../../shared/with-timeout.js'
import { type MetricJson, parseMetrics } from '../metrics/metric-json.js'
import { metricsText } from '../metrics/relay-metrics.js'
import { type IpcConnection, NO_FIELDS } from './ipc.js'

/** Aggregators of prom-client's process metrics that differ from its defaults. */
const AGGREGATORS: Readonly<Record<string, string>> = {
  process_start_time_seconds: 'min',
  // The limit applies to each process, so the process that is closest to it counts.
  process_open_fds: 'max',
  process_max_fds: 'min'
}
const aggregatorOf = ({ name, aggregator }: MetricJson): string =>
  AGGREGATORS[name] ?? (name.startsWith('nodejs_eventloop_lag') ? 'max' : aggregator)

/** Metrics that are also exported per process. They have another name, because a sum over one name would count twice. */
const PER_PROCESS = [
  ['centrifugo_node_num_clients', 'relay_worker_clients'],
  ['centrifugo_node_num_users', 'relay_worker_users'],
  ['centrifugo_node_num_subscriptions', 'relay_worker_subscriptions'],
  ['centrifugo_node_num_channels', 'relay_worker_channels'],
  ['centrifugo_transport_messages_sent', 'relay_worker_messages_sent_total'],
  ['process_cpu_seconds_total', 'relay_worker_cpu_seconds_total'],
  ['process_resident_memory_bytes', 'relay_worker_resident_memory_bytes'],
  ['nodejs_eventloop_lag_p99_seconds', 'relay_worker_eventloop_lag_p99_seconds']
] as const

/** The metrics of all processes of a relay: aggregated, and some for each process. */
export class AggregatedMetrics {
  readonly #latest = new Map<string, readonly MetricJson[]>()
  /** Final counts of processes that have exited. Without them the counters would decrease, which Prometheus reads as a reset. */
  #exited: readonly MetricJson[] = []

  /** Null for a process that did not reply: its last metrics are used. */
  async text(byProcess: ReadonlyMap<string, readonly MetricJson[] | null>): Promise<string> {
    for (const [process, metrics] of byProcess) if (metrics !== null) this.#latest.set(process, metrics)
    const present = [...byProcess.keys()].map((process) => [process, this.#latest.get(process) ?? []] as const)
    const all = [...present.map(([, metrics]) => metrics), this.#exited, perProcess(present)]
    return metricsText(await metricsOf(aggregate(all)))
  }

  /** Keeps the counts that the process reported last. */
  async processExited(process: string): Promise<void> {
    const counts = (this.#latest.get(process) ?? []).filter(({ type }) => type === 'counter' || type === 'histogram')
    this.#latest.delete(process)
    if (counts.length === 0) return
    const all = [...this.#exited, ...counts]
    this.#exited = all
    const summed = await metricsOf(aggregate([all]))
    // Unless another process has exited meanwhile.
    if (this.#exited === all) this.#exited = summed
  }
}

const aggregate = (lists: readonly (readonly MetricJson[])[]): Registry =>
  AggregatorRegistry.aggregate(
    lists.map((metrics) => metrics.map((metric) => ({ ...metric, aggregator: aggregatorOf(metric) })))
  )

const perProcess = (present: readonly (readonly [process: string, metrics: readonly MetricJson[]])[]): MetricJson[] =>
  PER_PROCESS.map(([source, name]) => {
    const found = present.flatMap(([process, metrics]) =>
      metrics.filter((metric) => metric.name === source).map((metric) => ({ process, metric }))
    )
    const values = found.map(({ process, metric }) => ({
      value: metric.values.reduce((total, { value }) => total + value, 0),
      labels: { worker: process }
    }))
    const { help = '', type = 'gauge' } = found[0]?.metric ?? {}
    return { name, help, type, aggregator: 'first', values }
  })

/** The last metrics of a worker that takes longer are used. */
const READ_TIMEOUT_MS = 5000
/** Value of the label `worker` for the primary. */
const PRIMARY_LABEL = 'primary'

/** The primary's side: aggregates the metrics of all processes. */
export class PrimaryMetrics {
  readonly #registry = new Registry()
  readonly #replacements: Counter
  readonly #aggregated = new AggregatedMetrics()
  readonly #workers = new Map<string, IpcConnection>()

  constructor() {
    collectProcessMetrics(this.#registry)
    this.#replacements = new Counter({
      name: 'relay_worker_replacements_total',
      help: 'Workers that exited and were replaced.',
      registers: [this.#registry]
    })
  }

  serve(ipc: IpcConnection, number: number): void {
    const process = String(number)
    this.#workers.set(process, ipc)
    ipc.onRequest({
      readMetrics: async () => {
        const text = await this.#read()
        return (out) => out.text(text)
      }
    })
    void ipc.closed.then(() => {
      this.#replacements.inc()
      if (this.#workers.get(process) === ipc) this.#workers.delete(process)
      return this.#aggregated.processExited(process)
    })
  }

  async #read(): Promise<string> {
    const replies = [...this.#workers].map(async ([process, ipc]) => {
      const metrics = await withTimeout(
        READ_TIMEOUT_MS,
        ipc.request('readWorkerMetrics', NO_FIELDS, (fields) => parseMetrics(fields.text()))
      )
      return [process, metrics] as const
    })
    const workers = await Promise.all(replies)
    const own = await metricsOf(this.#registry)
    // A worker may have exited meanwhile; its counts are then among those of the exited processes.
    const present = workers.filter(([process]) => this.#workers.has(process))
    return this.#aggregated.text(new Map([...present, [PRIMARY_LABEL, own]]))
  }
}

const metricsOf = async (registry: Registry): Promise<readonly MetricJson[]> =>
  parseMetrics(JSON.stringify(await registry.getMetricsAsJSON()))
