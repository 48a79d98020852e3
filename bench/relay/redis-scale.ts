import { setTimeout } from 'node:timers/promises'
import { cpuMicroseconds } from '../harness/cpu.js'
import { epochMs } from '../harness/epoch.js'
import { connectionsAllowed } from '../harness/open-files.js'
import { pace } from '../harness/pace.js'
import { startBenchRedis } from '../harness/redis.js'
import { median, medianRatio } from '../harness/statistics.js'
import type { Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { goalTable, grouped, roundsText, table } from '../harness/table.js'
import { Publishing, publishRequest } from './publishing.js'
import { KEY, type RunningServer, sideBySide } from './running-server.js'
import type { ScaleFigures } from './scale-clients.js'
import { ScaleClients } from './scale-load.js'
import { RELAY, startServer } from './servers.js'

const RELAYS = 3
/** Clients that measure latencies, one of so many. */
const READ_EVERY = 10
const PUBLISH_CONNECTIONS = 4
const SETTLE_MS = 1000
/** After a rate that was too high. */
const SLOW_SETTLE_MS = 10_000

interface Extent {
  readonly rounds: number
  readonly seconds: number
  readonly load: SetupLoad
}

interface SetupLoad {
  readonly connections: number
  readonly channels: number
  readonly perSecond: number
}

const FULL: Extent = { rounds: 5, seconds: 10, load: { connections: 30_000, channels: 2000, perSecond: 5000 } }
const QUICK: Extent = { rounds: 1, seconds: 1, load: { connections: 600, channels: 40, perSecond: 100 } }

/** One position, because three relays and 30,000 clients with position batches need more than two cores. */
const dataNow = (): string =>
  `{"sentAt":${epochMs()},"type":"position","data":{"transmitterId":"tx-1000","position":{"x":12.25,"y":7.5},"floorId":"floor-7","timestamp":1763200000000}}`

interface Reading extends ScaleFigures {
  /** CPU time of the relays for one delivery. */
  readonly perDelivery: number
  /** Shares of a core. */
  readonly relays: number
  readonly redis: number
}

/** The clients did not receive everything in time. */
class TooSlow extends Error {}

/** Relays with their clients, which stay connected between the readings. */
class Setup {
  readonly readings: Reading[] = []
  load: SetupLoad
  readonly #server: RunningServer
  readonly #clients: ScaleClients
  readonly #redisPid: number

  constructor(server: RunningServer, load: SetupLoad, redisPid: number) {
    this.#server = server
    this.#clients = new ScaleClients(load.connections)
    this.load = load
    this.#redisPid = redisPid
  }

  async connect(): Promise<void> {
    await this.#clients.connect({ ports: this.#server.ports, channels: this.load.channels, readEvery: READ_EVERY })
  }

  async read(seconds: number): Promise<Reading> {
    const { connections, channels, perSecond } = this.load
    const publishers = await Promise.all(
      this.#server.ports.map((port) => Publishing.open([port], PUBLISH_CONNECTIONS, [], expectSuccess))
    )
    const calls = Math.round(seconds * perSecond)
    await this.#clients.figures()
    const before = { relays: this.#relayCpu(), redis: cpuMicroseconds(this.#redisPid), at: performance.now() }
    let call = 0
    pace({ perSecond, calls }, () => {
      publishers[call % publishers.length]?.send(publishRequest(KEY, `floor:${call % channels}`, dataNow()))
      call += 1
    })
    await setTimeout(seconds * 1000 + SETTLE_MS)
    const micros = (performance.now() - before.at) * 1000
    const relays = this.#relayCpu() - before.relays
    const redis = cpuMicroseconds(this.#redisPid) - before.redis
    const figures = await this.#clients.figures()
    for (const publisher of publishers) publisher.close()
    const expected = (calls * connections) / channels
    if (figures.deliveries !== expected) throw new TooSlow(`${figures.deliveries} of ${expected} deliveries`)
    return { ...figures, perDelivery: relays / expected, relays: relays / micros, redis: redis / micros }
  }

  async stop(): Promise<void> {
    await this.#clients.stop()
    await this.#server.stop()
  }

  #relayCpu(): number {
    return this.#server.pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0)
  }
}

const expectSuccess = (isOk: boolean): void => {
  if (!isOk) throw new Error('a publication was rejected')
}

const BOTH_CORES = '0,1'
const HOST = { RELAY_HOST: '0.0.0.0' }

/** Compares relays that share one Redis with one relay in memory. They take turns, with all clients connected. */
const run = async ({ isQuick, ...options }: SuiteOptions): Promise<SuiteResult> => {
  const defaults = isQuick ? QUICK : FULL
  const { rounds = defaults.rounds, seconds = defaults.seconds } = options
  const redis = await startBenchRedis()
  if (redis === null) {
    return { blocks: [{ name: 'redis scale', markdown: 'Not measured: there is no redis-server on the PATH.' }] }
  }
  const setups = new Map<string, Setup>()
  try {
    const { load } = defaults
    const env = { ...HOST, RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
    // One process may not be allowed to open files for all connections. Half of everything leaves the same deliveries per publication.
    const part = load.connections > connectionsAllowed() ? halfOf(load) : load
    setups.set('one relay, memory engine', new Setup(await startServer(RELAY, BOTH_CORES, HOST), part, redis.pid))
    const shared = await Promise.all(Array.from({ length: RELAYS }, () => startServer(RELAY, BOTH_CORES, env)))
    // There are three of them.
    const relays = sideBySide(shared as [RunningServer, ...RunningServer[]])
    setups.set(`${RELAYS} relays, one Redis`, new Setup(relays, load, redis.pid))
    for (const setup of setups.values()) await setup.connect()
    await findRate([...setups.values()], seconds)
    for (let round = 0; round < rounds; round++) {
      for (const setup of setups.values()) setup.readings.push(await setup.read(seconds))
    }
    return { blocks: [{ name: 'redis scale', markdown: report(setups, { rounds, seconds }) }] }
  } finally {
    for (const setup of setups.values()) await setup.stop()
    await redis.stop()
  }
}

const MAX_ATTEMPTS = 4

/** Warms the relays up, and halves the rate of both until this machine sustains it. */
const findRate = async (setups: readonly Setup[], seconds: number): Promise<void> => {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      for (const setup of setups) await setup.read(seconds)
      return
    } catch (error) {
      if (!(error instanceof TooSlow)) throw error
      for (const setup of setups) setup.load = { ...setup.load, perSecond: setup.load.perSecond / 2 }
      await setTimeout(SLOW_SETTLE_MS)
    }
  }
  throw new Error('the machine is too slow for this benchmark')
}

const halfOf = ({ connections, channels, perSecond }: SetupLoad): SetupLoad => ({
  connections: connections / 2,
  channels: channels / 2,
  perSecond: perSecond / 2
})

const report = (setups: ReadonlyMap<string, Setup>, { rounds, seconds }: Omit<Extent, 'load'>): string => {
  const rows = [...setups].map(([name, { load, readings }]) => {
    const of = (pick: (reading: Reading) => number): number => median(readings.map(pick))
    return [
      name,
      grouped(load.connections),
      grouped(load.channels),
      grouped(load.perSecond),
      percent(of((reading) => reading.relays)),
      percent(of((reading) => reading.redis)),
      of((reading) => reading.perDelivery).toFixed(1),
      [of(({ p50 }) => p50), of(({ p99 }) => p99), of(({ p999 }) => p999)].map((value) => value.toFixed(1)).join(', ')
    ]
  })
  const [memory = [], redis = []] = [...setups.values()].map(({ readings }) =>
    readings.map(({ perDelivery }) => perDelivery)
  )
  return [
    `Medians of ${roundsText(rounds)} of ${seconds} s, of one position each; each publication goes to one of the relays.`,
    table(
      [
        'setup',
        'connections',
        'channels',
        'publications/s',
        'relays, % of a core',
        'Redis, % of a core',
        'relays, CPU µs/delivery',
        'latency ms: p50, p99, p99.9'
      ],
      rows
    ),
    goalTable([
      {
        what: `CPU time per delivery, ${RELAYS} relays on one Redis to one relay in memory`,
        measured: medianRatio(redis, memory),
        atMost: 1.3,
        unit: ''
      }
    ])
  ].join('\n\n')
}

const percent = (share: number): string => (share * 100).toFixed(0)

export const redisScaleSuite: Suite = { blocks: ['redis scale'], run, isOnRequest: true }
