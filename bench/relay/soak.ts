import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { cpuMicroseconds, residentMebibytes } from '../harness/cpu.js'
import { connectionsAllowed } from '../harness/open-files.js'
import { LOAD_CORE, startProcess } from '../harness/process.js'
import { median } from '../harness/statistics.js'
import type { Block, Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { goalTable, grouped, table } from '../harness/table.js'
import { readMetrics } from './relay-metrics.js'
import { KEY, type RunningServer, SECRET } from './running-server.js'
import { RELAY, startServer } from './servers.js'
import type { SoakFigures, SoakOrder } from './soak-load.js'

const CHANNELS = 100
const RATE = 1
const SLOW_SHARE = 0.01
const CHURN_PER_MINUTE = 0.05

const SLOW_DISCONNECTS = 'relay_slow_disconnects_total'
const ROWS = 10
const SAMPLE_MS = 5000
/** Until the history of all channels has its final length, and V8 has optimised the code. */
const WARM_UP_SECONDS = 90

interface SoakRow extends SoakFigures {
  readonly minute: number
  readonly clients: number
  /** Median of the samples. */
  readonly rssMebibytes: number
  readonly heapMebibytes: number
  /** The relay's metric: the time between two calls of a timer of 50 ms. */
  readonly loopP50Ms: number
  readonly loopP99Ms: number
  /** The same of this process, which is idle: above 51 ms, other programs use the machine. */
  readonly idleP99Ms: number
  /** Busy cores. */
  readonly cpu: number
  /** Connections of slow readers that the relay closed. */
  readonly slowClosed: number
}

/** A long run under steady load, with slow readers and clients that are replaced. Memory and delays must not grow. */
const run = async ({ minutes = 30, connections = 10_000 }: SuiteOptions): Promise<SuiteResult> => {
  const clients = Math.min(connections, connectionsAllowed())
  const server = await startServer(RELAY)
  const load = startProcess(LOAD_CORE, new URL('./soak-load.js', import.meta.url))
  const request = async (line: string): Promise<SoakFigures> => {
    load.writeLine(line)
    const [, json = ''] = await load.line(/^result (.*)$/)
    return JSON.parse(json)
  }
  try {
    const order: SoakOrder = {
      port: server.ports[0] ?? 0,
      secret: SECRET,
      key: KEY,
      clients,
      channels: CHANNELS,
      rate: RATE,
      slowShare: SLOW_SHARE,
      churnPerMinute: CHURN_PER_MINUTE
    }
    await request(JSON.stringify(order))
    await setTimeout(WARM_UP_SECONDS * 1000)
    await request('')
    let closedBefore = (await readMetrics(server.ports[0] ?? 0))(SLOW_DISCONNECTS)
    const rows: SoakRow[] = []
    const rowMs = (minutes * 60_000) / ROWS
    while (rows.length < ROWS) {
      const row = await readRow(server, rowMs, () => request(''))
      const minute = (minutes * (rows.length + 1)) / ROWS
      rows.push({ ...row, minute, slowClosed: row.slowClosed - closedBefore })
      closedBefore = row.slowClosed
      process.stderr.write(`${cellsOf(rows.at(-1)).join('  ')}\n`)
    }
    return { blocks: [soakBlock(rows, minutes, clients)] }
  } finally {
    await Promise.all([load.stop(), server.stop()])
  }
}

export const soakSuite: Suite = { blocks: ['soak'], run, isOnRequest: true }

/** As in the relay's metrics. */
const LOOP_RESOLUTION_MS = 50

const readRow = async (
  server: RunningServer,
  durationMs: number,
  figures: () => Promise<SoakFigures>
): Promise<Omit<SoakRow, 'minute'>> => {
  const [pid = 0] = server.pids
  const startedAt = performance.now()
  const cpuBefore = cpuMicroseconds(pid)
  const samples: number[] = []
  const idle = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  idle.enable()
  while (performance.now() - startedAt < durationMs) {
    await setTimeout(Math.min(SAMPLE_MS, durationMs))
    samples.push(residentMebibytes(pid))
  }
  const elapsedMs = performance.now() - startedAt
  idle.disable()
  const metric = await readMetrics(server.ports[0] ?? 0)
  return {
    ...(await figures()),
    clients: metric('centrifugo_node_num_clients'),
    rssMebibytes: median(samples),
    heapMebibytes: metric('nodejs_heap_size_used_bytes') / 2 ** 20,
    loopP50Ms: metric('nodejs_eventloop_lag_p50_seconds') * 1000,
    loopP99Ms: metric('nodejs_eventloop_lag_p99_seconds') * 1000,
    idleP99Ms: idle.percentile(99) / 1e6,
    cpu: (cpuMicroseconds(pid) - cpuBefore) / 1000 / elapsedMs,
    slowClosed: metric(SLOW_DISCONNECTS)
  }
}

const HEAD = [
  'minute',
  'RSS MiB',
  'heap MiB',
  'loop delay p50 ms',
  'p99',
  'idle process p99',
  'latency p50 ms',
  'p99',
  'p99.9',
  'CPU %',
  'clients',
  'replaced',
  'slow, closed',
  'failures'
]

const cellsOf = (row: SoakRow | undefined): string[] =>
  row === undefined
    ? []
    : [
        row.minute.toFixed(row.minute % 1 === 0 ? 0 : 1),
        row.rssMebibytes.toFixed(0),
        row.heapMebibytes.toFixed(0),
        row.loopP50Ms.toFixed(1),
        row.loopP99Ms.toFixed(1),
        row.idleP99Ms.toFixed(1),
        row.p50.toFixed(1),
        row.p99.toFixed(1),
        row.p999.toFixed(1),
        (row.cpu * 100).toFixed(0),
        row.clients.toFixed(0),
        row.replaced.toFixed(0),
        row.slowClosed.toFixed(0),
        row.failures.toFixed(0)
      ]

const soakBlock = (rows: readonly SoakRow[], minutes: number, clients: number): Block => {
  const third = Math.floor(rows.length / 3)
  const growth = (pick: (row: SoakRow) => number): number =>
    median(rows.slice(-third).map(pick)) / median(rows.slice(0, third).map(pick))
  const goal = (what: string, atMost: number, pick: (row: SoakRow) => number) => ({
    what: `${what}, last third to first third`,
    measured: growth(pick),
    atMost,
    unit: ''
  })
  return {
    name: 'soak',
    markdown: [
      `${minutes} minutes with ${grouped(clients)} clients on ${CHANNELS} channels, each with ${RATE} publication of 2.5 KB per second; ${SLOW_SHARE * 100} % of the clients read 64 KB/s of 250 KB/s, and ${CHURN_PER_MINUTE * 100} % of the others are replaced every minute.`,
      table(
        HEAD,
        rows.map((row) => cellsOf(row))
      ),
      goalTable([
        goal('resident memory', 1.1, ({ rssMebibytes }) => rssMebibytes),
        goal('event-loop delay, p99', 1.5, ({ loopP99Ms }) => loopP99Ms),
        goal('latency, p50', 1.5, ({ p50 }) => p50),
        goal('latency, p99', 1.5, ({ p99 }) => p99),
        {
          what: 'connections that ended without a reason',
          measured: rows.reduce((sum, { failures }) => sum + failures, 0),
          atMost: 0,
          unit: ''
        }
      ])
    ].join('\n\n')
  }
}
