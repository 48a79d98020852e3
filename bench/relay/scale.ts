import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Costs, MEASURED } from '../../scripts/lib/capacity/costs.js'
import { readMachineFile } from '../../scripts/lib/capacity/machine-file.js'
import { relayCores } from '../../scripts/lib/capacity/relay-cpu.js'
import { relayMebibytes } from '../../scripts/lib/capacity/relay-memory.js'
import { cpuMicroseconds, kernelSocketMebibytes, totalMebibytes } from '../harness/cpu.js'
import { epochMs } from '../harness/epoch.js'
import { connectionsAllowed } from '../harness/open-files.js'
import { pace } from '../harness/pace.js'
import { freePort } from '../harness/port.js'
import { type BenchProcess, flagsOf, SERVER_CORE, startProcess } from '../harness/process.js'
import type { Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { grouped, table } from '../harness/table.js'
import { positionBatch } from './position-batch.js'
import { Publishing, publishRequest } from './publishing.js'
import { readMetrics } from './relay-metrics.js'
import { KEY, RELAY_NAMESPACE, SECRET } from './running-server.js'
import type { ScaleFigures } from './scale-clients.js'
import { ScaleClients } from './scale-load.js'

const CHANNELS = 1000
const PUBLISHES_PER_SECOND = 100
const PUBLISH_CONNECTIONS = 8
/** Publications to one channel that has all clients. */
const LARGE_CHANNEL_PUBLICATIONS = 5
const POLL_MS = 50
/** The part of its allowed connections that one of several workers has on average. */
const FILLED = 0.9

/** How much is measured. */
interface Extent {
  readonly connections: number
  /** Pings are sent every 25 s. */
  readonly idleSeconds: number
  readonly publishSeconds: number
  readonly settleMs: number
}

const FULL: Extent = { connections: 100_000, idleSeconds: 50, publishSeconds: 20, settleMs: 10_000 }
const QUICK: Extent = { connections: 2000, idleSeconds: 2, publishSeconds: 2, settleMs: 500 }

/** A relay with all of its workers on one core. */
class ScaleServer {
  readonly port: number
  readonly #process: BenchProcess
  readonly #folder: string

  private constructor(port: number, process: BenchProcess, folder: string) {
    this.port = port
    this.#process = process
    this.#folder = folder
  }

  static async start(port: number, connections: number, workers: number): Promise<ScaleServer> {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-scale-'))
    writeConfig(folder, connections)
    const env = {
      REALTIME_HMAC_SECRET: SECRET,
      REALTIME_API_KEY: KEY,
      RELAY_HOST: '0.0.0.0',
      RELAY_PORT: String(port),
      RELAY_CONFIG: join(folder, CONFIG_FILE),
      RELAY_WORKERS: String(workers)
    }
    const process = startProcess(
      SERVER_CORE,
      new URL('../../src/relay/main.js', import.meta.url),
      env,
      flagsOf('relay')
    )
    await process.line(/listening at/)
    return new ScaleServer(port, process, folder)
  }

  cpu(): number {
    return cpuMicroseconds(this.#process.pid)
  }

  mebibytes(): number {
    return totalMebibytes(this.#process.pid)
  }

  /** Reloads the config file with another limit. */
  reload(connections: number): void {
    writeConfig(this.#folder, connections)
    process.kill(this.#process.pid, 'SIGHUP')
  }

  async stop(): Promise<void> {
    await this.#process.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

const CONFIG_FILE = 'relay.json'
const writeConfig = (folder: string, connections: number): void => {
  const limit = connections * 2
  const client = { connection_limit: limit, connections_per_address: limit, connection_rate_limit: limit }
  writeFileSync(join(folder, CONFIG_FILE), JSON.stringify({ client, channel: { namespaces: [RELAY_NAMESPACE] } }))
}

const dataNow = (at: number): string => `{"sentAt":${at},"batch":${positionBatch()}}`

/** One step of the run and what it showed. */
type Row = readonly [step: string, figure: string, measured: string]
type ModelRow = readonly [...row: Row, byModel: string]

class ScaleRun {
  readonly #extent: Extent
  readonly #workers: number
  readonly #clients: ScaleClients
  readonly #costs: Costs
  readonly rows: Row[] = []
  /** Figures that the capacity model predicts, and details that explain the others. */
  readonly modelRows: ModelRow[] = []

  constructor(extent: Extent, workers: number, clients: ScaleClients, costs: Costs) {
    this.#extent = extent
    this.#workers = workers
    this.#clients = clients
    this.#costs = costs
  }

  async all(): Promise<void> {
    const port = await freePort()
    let server = await this.#start(port)
    try {
      const before = server.mebibytes()
      await this.#connectAll('connect all', server, CHANNELS)
      await this.#settled(server, before)
      await this.#idle(server)
      await this.#publish(server, 'publications', () => undefined)
      await this.#publish(server, 'the same with a reload', () => server.reload(this.#extent.connections + 1))
      await this.#shutDown(server)
      server = await this.#start(port)
      await this.#connectAll('connect all again, to one channel', server, 1)
      await this.#largeChannel(server)
    } finally {
      await server.stop()
    }
  }

  #start(port: number): Promise<ScaleServer> {
    return ScaleServer.start(port, this.#extent.connections, this.#workers)
  }

  #add(...row: Row): void {
    this.rows.push(row)
    process.stderr.write(`${row.join('  ')}\n`)
  }

  #addWithModel(...[step, figure, measured, byModel]: ModelRow): void {
    this.#add(step, figure, measured)
    this.modelRows.push([step, figure, measured, byModel])
  }

  #addDetail(...row: Row): void {
    this.modelRows.push([...row, '–'])
    process.stderr.write(`${row.join('  ')}\n`)
  }

  async #connectAll(step: string, server: ScaleServer, channels: number): Promise<void> {
    const [cpuBefore, startedAt] = [server.cpu(), performance.now()]
    await this.#clients.connect({ ports: [server.port], channels, readEvery: 1 })
    const seconds = (performance.now() - startedAt) / 1000
    this.#add(step, 's until the last is subscribed', seconds.toFixed(1))
    const cpu = (server.cpu() - cpuBefore) / this.#extent.connections
    // The model's connect is that of a relay with workers.
    const byModel = this.#workers === 1 ? '–' : this.#costs.connectMicros.toFixed(0)
    this.#addWithModel(step, 'CPU µs per client', cpu.toFixed(0), byModel)
  }

  async #settled(server: ScaleServer, before: number): Promise<void> {
    await setTimeout(this.#extent.settleMs)
    const after = server.mebibytes()
    const { connections } = this.#extent
    const content = { connections, historyBytes: 0 }
    const model = relayMebibytes(content, { ...this.#costs, idleMib: before })
    this.#addWithModel('memory', 'MiB of all processes', after.toFixed(0), model.toFixed(0))
    this.#add('memory', 'KiB per connection', (((after - before) * 1024) / connections).toFixed(1))
    this.#addDetail('memory', 'MiB of socket buffers in the kernel, both ends', kernelSocketMebibytes().toFixed(0))
  }

  async #idle(server: ScaleServer): Promise<void> {
    const [cpuBefore, startedAt] = [server.cpu(), performance.now()]
    await setTimeout(this.#extent.idleSeconds * 1000)
    const cores = (server.cpu() - cpuBefore) / 1000 / (performance.now() - startedAt)
    this.#addWithModel('idle, pings every 25 s', '% of a core', percent(cores), percent(this.#modelCores(0)))
  }

  async #publish(server: ScaleServer, step: string, meanwhile: () => void): Promise<void> {
    const { publishSeconds, connections } = this.#extent
    const calls = publishSeconds * PUBLISHES_PER_SECOND
    const publishing = await this.#openPublishing(server)
    await Promise.all([this.#clients.figures(), readMetrics(server.port)])
    const [cpuBefore, startedAt] = [server.cpu(), performance.now()]
    let channel = 0
    pace({ perSecond: PUBLISHES_PER_SECOND, calls }, () => {
      publishing.send(publishRequest(KEY, `floor:${channel % CHANNELS}`, dataNow(epochMs())))
      channel += 1
    })
    await setTimeout(publishSeconds * 500)
    meanwhile()
    await setTimeout(publishSeconds * 500)
    await setTimeout(1000)
    const cores = (server.cpu() - cpuBefore) / 1000 / (performance.now() - startedAt)
    const figures = await this.#clients.figures()
    const metric = await readMetrics(server.port)
    publishing.close()
    const expected = (calls * connections) / CHANNELS
    this.#add(step, 'deliveries, of', `${grouped(figures.deliveries)} of ${grouped(expected)}`)
    this.#addWithModel(step, '% of a core', percent(cores), percent(this.#modelCores(PUBLISHES_PER_SECOND)))
    this.#add(step, 'latency ms: p50, p99, p99.9', latencyText(figures))
    const pauses = [metric('nodejs_eventloop_lag_max_seconds') * 1000, figures.pauseMs]
    this.#addDetail(
      step,
      'longest pause of a process, ms: relay, clients',
      pauses.map((ms) => ms.toFixed(0)).join(', ')
    )
  }

  /** Busy cores of the relay by the capacity model. A publication passes through the primary to every worker. */
  #modelCores(publishesPerSecond: number): number {
    const deliveriesPerSecond = (publishesPerSecond * this.#extent.connections) / CHANNELS
    const load = {
      connections: this.#extent.connections,
      deliveriesPerSecond,
      deliveryPauseMs: (1000 * CHANNELS) / publishesPerSecond,
      payloadBytes: dataNow(epochMs()).length
    }
    if (this.#workers === 1) return relayCores({ ...load, publishesPerSecond, receivedPerSecond: 0 }, this.#costs)
    const none = {
      connections: 0,
      publishesPerSecond: 0,
      receivedPerSecond: 0,
      deliveriesPerSecond: 0,
      deliveryPauseMs: 0,
      payloadBytes: 0
    }
    const primary = relayCores({ ...none, publishesPerSecond }, this.#costs)
    const received = (publishesPerSecond * this.#costs.receiveMicros) / 1e6
    const wakes = relayCores({ ...none, receivedPerSecond: publishesPerSecond }, this.#costs)
    const clients = relayCores({ ...load, publishesPerSecond: 0, receivedPerSecond: 0 }, this.#costs)
    return primary + this.#workers * (received + wakes) + clients
  }

  async #largeChannel(server: ScaleServer): Promise<void> {
    const { connections } = this.#extent
    const publishing = await this.#openPublishing(server)
    await this.#clients.figures()
    const times: number[] = []
    const cpuBefore = server.cpu()
    for (let count = 0; count < LARGE_CHANNEL_PUBLICATIONS; count++) {
      const sentAt = epochMs()
      publishing.send(publishRequest(KEY, 'floor:0', dataNow(sentAt)))
      times.push((await this.#untilDelivered(connections)) - sentAt)
    }
    publishing.close()
    const cpu = (server.cpu() - cpuBefore) / (connections * LARGE_CHANNEL_PUBLICATIONS)
    const title = `one publication to ${grouped(connections)} subscribers`
    this.#add(title, 'ms until the last delivery', times.map((time) => time.toFixed(0)).join(', '))
    this.#add(title, 'CPU µs per delivery', cpu.toFixed(1))
  }

  /** Returns the time of the last delivery. */
  async #untilDelivered(count: number): Promise<number> {
    for (let delivered = 0; ; ) {
      await setTimeout(POLL_MS)
      const figures = await this.#clients.figures()
      delivered += figures.deliveries
      if (delivered >= count) return figures.lastAt
      if (figures.connected < count) throw new Error(`${figures.connected} of ${count} clients are connected`)
    }
  }

  async #shutDown(server: ScaleServer): Promise<void> {
    const startedAt = performance.now()
    await server.stop()
    this.#add('graceful shutdown', 's until the process ends', ((performance.now() - startedAt) / 1000).toFixed(1))
    for (let connected = 1; connected > 0; ) {
      await setTimeout(POLL_MS)
      connected = (await this.#clients.figures()).connected
    }
  }

  #openPublishing({ port }: ScaleServer): Promise<Publishing> {
    return Publishing.open([port], PUBLISH_CONNECTIONS, [], (isOk) => {
      if (!isOk) throw new Error('a publication was rejected')
    })
  }
}

const percent = (cores: number): string => (cores * 100).toFixed(1)
const latencyText = ({ p50, p99, p999 }: ScaleFigures): string =>
  [p50, p99, p999].map((value) => value.toFixed(1)).join(', ')

/** Connections are not distributed evenly over several workers. */
const workersFor = (connections: number, allowed: number): number =>
  connections <= allowed ? 1 : Math.ceil(connections / (allowed * FILLED))

/** Many connections to one relay on one core, through everything that happens to it in a day. */
const run = async ({ isQuick, connections, seconds, machineFile }: SuiteOptions): Promise<SuiteResult> => {
  const defaults = isQuick ? QUICK : FULL
  const extent = {
    ...defaults,
    connections: connections ?? defaults.connections,
    publishSeconds: seconds ?? defaults.publishSeconds
  }
  const workers = workersFor(extent.connections, connectionsAllowed())
  const clients = new ScaleClients(extent.connections)
  try {
    const costs = machineFile === undefined ? MEASURED : readMachineFile(machineFile)
    const steps = new ScaleRun(extent, workers, clients, costs)
    await steps.all()
    const processes =
      workers === 1
        ? 'one process'
        : `${workers} workers, because a process may open ${grouped(connectionsAllowed())} files`
    return {
      blocks: [
        {
          name: 'scale',
          markdown: [
            `${grouped(extent.connections)} connections to one relay with ${processes}, all on one core; publications: ${PUBLISHES_PER_SECOND}/s to ${grouped(CHANNELS)} channels.`,
            table(['step', 'figure', 'measured'], steps.rows)
          ].join('\n\n')
        },
        { name: 'scale model', markdown: table(['step', 'figure', 'measured', 'by the model'], steps.modelRows) }
      ]
    }
  } finally {
    await clients.stop()
  }
}

export const scaleSuite: Suite = { blocks: ['scale', 'scale model'], run, isOnRequest: true }
