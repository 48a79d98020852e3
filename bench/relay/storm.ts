import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { cpuMicroseconds, peakMebibytes, residentMebibytes } from '../harness/cpu.js'
import { hasTlsProxy, startTlsProxy } from '../harness/nginx.js'
import { SERVER_CORE } from '../harness/process.js'
import { startBenchRedis } from '../harness/redis.js'
import { median, medianRatio } from '../harness/statistics.js'
import type { Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { type Goal, goalTable, grouped, roundsText, table } from '../harness/table.js'
import type { Since } from './dialect.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import { KEY, type RunningServer } from './running-server.js'
import { CENTRIFUGO, installedServers, RELAY, SEND_LOOP, type ServerName, startServer } from './servers.js'

const RECOVERED = 20
const AT_ONCE = 100
/** As in an installation with systemd: the code that the last run compiled. A storm follows a restart. */
const COMPILE_CACHE = { NODE_COMPILE_CACHE: join(import.meta.dirname, 'compile-cache') }
/** As in an installation behind nginx: the relay reads the client's address from X-Forwarded-For. */
const BEHIND_PROXY = { TRUST_PROXY: 'loopback' }

/** How much is measured. */
interface Extent {
  readonly rounds: number
  readonly sizes: readonly number[]
  readonly recovering: number
  /** Clients that connect through TLS. */
  readonly encrypted: number
  /** Clients that return through TLS after an outage. */
  readonly returning: number
  /** Time between the last connect and the reading of memory. */
  readonly settleMs: number
}

const FULL: Extent = {
  rounds: 5,
  sizes: [2000, 8000],
  recovering: 5000,
  encrypted: 2000,
  returning: 10_000,
  settleMs: 5000
}
const QUICK: Extent = { rounds: 1, sizes: [1000], recovering: 1000, encrypted: 500, returning: 1000, settleMs: 500 }

/** All clients connect, authenticate and subscribe to one channel of a server that has just started. */
interface Storm {
  readonly title: string
  readonly server: ServerName
  readonly clients: number
  readonly env?: Readonly<Record<string, string>>
  readonly recovers?: boolean
  readonly isEncrypted?: boolean
  /** All clients of a service return at once, and a publication follows as soon as the last one is subscribed. */
  readonly isOutage?: boolean
}

interface StormReading {
  /** CPU microseconds per client, of the server and of nginx. */
  readonly cpu: number
  readonly nginxCpu: number
  /** Peak of resident memory, to the value after the storm. */
  readonly peak: number
  /** From the first connect until the last client is subscribed. */
  readonly seconds: number
  /** Of the first publication afterwards; 0 without one. */
  readonly firstP99: number
}

const readStorm = async (load: Load, storm: Storm, settleMs: number): Promise<StormReading> => {
  const cache = storm.server === RELAY ? COMPILE_CACHE : {}
  const server = await startServer(storm.server, SERVER_CORE, { ...cache, ...storm.env })
  const proxy = storm.isEncrypted ? await startTlsProxy(server.ports[0] ?? 0) : null
  const [pid = 0] = server.pids
  try {
    const since = storm.recovers ? await publishHistory(server) : undefined
    const order = {
      ...openOrder(server, storm.clients, 1),
      ...(proxy !== null && { ports: [proxy.port], isEncrypted: true }),
      atOnce: AT_ONCE,
      since
    }
    const before = proxy === null ? 0 : cpuMicroseconds(proxy.pid)
    const { value, rate } = await measure(load, server, order, 'count')
    const first = storm.isOutage ? await load.run({ ...FIRST_PUBLICATION, ports: server.ports }) : null
    const nginxCpu = proxy === null ? 0 : (cpuMicroseconds(proxy.pid) - before) / storm.clients
    await setTimeout(settleMs)
    const peak = peakMebibytes(pid) / residentMebibytes(pid)
    const reading = { cpu: value, nginxCpu, peak, seconds: storm.clients / rate, firstP99: first?.p99 ?? 0 }
    await closeAll(load)
    return reading
  } finally {
    await proxy?.stop()
    await server.stop()
  }
}

const FIRST_PUBLICATION = {
  kind: 'publish',
  key: KEY,
  data: positionBatch(),
  channels: 1,
  connections: 1,
  seconds: 0.5,
  perSecond: 1
} as const

const publish = async ({ ports: [port] }: RunningServer): Promise<Since> => {
  const response = await fetch(`http://127.0.0.1:${port}/api/publish`, {
    method: 'POST',
    headers: { 'x-api-key': KEY },
    body: `{"channel":"floor:0","data":${positionBatch()}}`
  })
  const { result } = JSON.parse(await response.text())
  return { epoch: result.epoch, offset: result.offset }
}

/** Publishes what the clients recover. Returns the position before it. */
const publishHistory = async (server: RunningServer): Promise<Since> => {
  const since = await publish(server)
  for (let count = 0; count < RECOVERED; count++) await publish(server)
  return since
}

const COMPARED: ReadonlySet<ServerName> = new Set([RELAY, SEND_LOOP, CENTRIFUGO])

const first = (clients: number): string => `first ${grouped(clients)} clients`

const RECOVERING: ReadonlySet<ServerName> = new Set([RELAY, CENTRIFUGO])

/** The clients of the relay and of Centrifugo also recover. */
const outagesOf = ({ returning }: Extent): Storm[] =>
  installedServers()
    .filter((name) => COMPARED.has(name))
    .map((server) => ({
      title: outageTitle(server),
      server,
      clients: returning,
      env: BEHIND_PROXY,
      recovers: RECOVERING.has(server),
      isEncrypted: true,
      isOutage: true
    }))

const outageTitle = (server: ServerName): string => (RECOVERING.has(server) ? `${server}, with recovery` : server)

/** The storms of the relay beside other servers, in the order of the report. */
const comparedStorms = ({ sizes, encrypted }: Extent): Storm[] => {
  const servers = installedServers().filter((name) => COMPARED.has(name))
  const ofServers = (clients: number, title: string, options: Partial<Storm> = {}): Storm[] =>
    servers.map((server) => ({ title: `${title}, ${server}`, server, clients, ...options }))
  return [
    ...sizes.flatMap((size) => ofServers(size, first(size))),
    ...(hasTlsProxy()
      ? ofServers(encrypted, `${first(encrypted)} through nginx with TLS`, { isEncrypted: true, env: BEHIND_PROXY })
      : [])
  ]
}

/** The storms of the relay with each engine, in the order of the report. */
const engineStorms = ({ recovering }: Extent, redisUrl: string | undefined): Storm[] => {
  const ofEngine = (engine: string, env: Readonly<Record<string, string>>): Storm[] => {
    const storm = { server: RELAY, clients: recovering, env } as const
    const title = `${first(recovering)}, relay, ${engine}`
    return [
      { ...storm, title },
      { ...storm, title: recoveryTitle(title), recovers: true }
    ]
  }
  return [
    ...ofEngine(MEMORY_ENGINE, {}),
    ...(redisUrl === undefined ? [] : ofEngine(REDIS_ENGINE, { RELAY_ENGINE: 'redis', REDIS_URL: redisUrl }))
  ]
}

const MEMORY_ENGINE = 'memory engine'
const REDIS_ENGINE = 'Redis engine'
const recoveryTitle = (title: string): string => `${title}, each recovers ${RECOVERED} publications`

/** The cost of all clients returning at once after a restart. The servers take turns, each time with a new process. */
const run = async ({ isQuick, ...options }: SuiteOptions): Promise<SuiteResult> => {
  const defaults = isQuick ? QUICK : FULL
  const extent = { ...defaults, rounds: options.rounds ?? defaults.rounds }
  const load = new Load()
  const redis = await startBenchRedis()
  const compared = comparedStorms(extent)
  const engines = engineStorms(extent, redis?.url)
  const storms = [...compared, ...engines]
  const outages = hasTlsProxy() ? outagesOf(extent) : []
  const readings = new Map<string, StormReading[]>(storms.map(({ title }) => [title, []]))
  const outageReadings = new Map<string, StormReading[]>(outages.map(({ title }) => [title, []]))
  try {
    for (let round = 0; round < extent.rounds; round++) {
      for (const storm of storms) readings.get(storm.title)?.push(await readStorm(load, storm, extent.settleMs))
      for (const storm of outages) outageReadings.get(storm.title)?.push(await readStorm(load, storm, extent.settleMs))
    }
  } finally {
    await Promise.all([load.stop(), redis?.stop()])
  }
  const facts = `Medians of ${roundsText(extent.rounds)}, each with new processes; ${AT_ONCE} clients connect at the same time.`
  return {
    blocks: [
      {
        name: 'storm',
        markdown: [
          facts,
          ...(hasTlsProxy() ? [] : ['Not measured: through TLS, because nginx or openssl is not on the PATH.']),
          comparedTable(compared, readings),
          goalTable(comparedGoals(extent, readings)),
          ...(outages.length === 0 ? [] : [outageTable(extent, outageReadings)])
        ].join('\n\n')
      },
      {
        name: 'storm engines',
        markdown: [
          facts,
          ...(redis === null ? ['Not measured: with Redis, because there is no redis-server on the PATH.'] : []),
          engineTable(engines, readings),
          goalTable(engineGoals(extent, readings))
        ].join('\n\n')
      }
    ]
  }
}

export const stormSuite: Suite = { blocks: ['storm', 'storm engines'], run }

type StormReadings = ReadonlyMap<string, readonly StormReading[]>

const medianOf = (readings: StormReadings, title: string, pick: (reading: StormReading) => number): number =>
  median((readings.get(title) ?? []).map(pick))

const comparedTable = (storms: readonly Storm[], readings: StormReadings): string =>
  table(
    ['connect, authenticate, subscribe', 'CPU µs/client', 'of nginx'],
    storms.map(({ title }) => {
      const nginx = medianOf(readings, title, ({ nginxCpu }) => nginxCpu)
      return [title, medianOf(readings, title, ({ cpu }) => cpu).toFixed(0), nginx === 0 ? '–' : nginx.toFixed(0)]
    })
  )

const engineTable = (storms: readonly Storm[], readings: StormReadings): string =>
  table(
    ['connect, authenticate, subscribe', 'CPU µs/client', 'peak memory to settled'],
    storms.map(({ title }) => [
      title,
      medianOf(readings, title, ({ cpu }) => cpu).toFixed(0),
      medianOf(readings, title, ({ peak }) => peak).toFixed(2)
    ])
  )

const outageTable = ({ returning }: Extent, readings: StormReadings): string =>
  table(
    [
      `${grouped(returning)} clients return through nginx with TLS`,
      's until the last is subscribed',
      'CPU µs/client',
      'first publication, p99 ms'
    ],
    [...readings].map(([title, list]) => [
      title,
      median(list.map(({ seconds }) => seconds)).toFixed(1),
      median(list.map(({ cpu }) => cpu)).toFixed(0),
      median(list.map(({ firstP99 }) => firstP99)).toFixed(0)
    ])
  )

interface CpuGoal {
  readonly what: string
  /** The titles of the storms. */
  readonly ours: string
  readonly theirs: string
  readonly atMost: number
}

/** The goal, unless one of its storms was not measured. */
const cpuGoal = (readings: StormReadings, { what, ours, theirs, atMost }: CpuGoal): Goal[] => {
  const [our, their] = [readings.get(ours), readings.get(theirs)]
  if (our === undefined || their === undefined) return []
  const cpus = (list: readonly StormReading[]): readonly number[] => list.map(({ cpu }) => cpu)
  return [{ what, measured: medianRatio(cpus(our), cpus(their)), atMost, unit: '' }]
}

const comparedGoals = ({ sizes, encrypted }: Extent, readings: StormReadings): Goal[] => {
  const toServer = (title: string, peer: ServerName): Goal[] =>
    cpuGoal(readings, {
      what: `${title}, to ${peer}`,
      ours: `${title}, ${RELAY}`,
      theirs: `${title}, ${peer}`,
      atMost: 1.2
    })
  return [
    ...sizes.flatMap((size) => [...toServer(first(size), SEND_LOOP), ...toServer(first(size), CENTRIFUGO)]),
    ...toServer(`${first(encrypted)} through nginx with TLS`, SEND_LOOP)
  ]
}

const engineGoals = ({ sizes, recovering }: Extent, readings: StormReadings): Goal[] => {
  const ofEngine = (engine: string): Goal[] => {
    const theirs = `${first(recovering)}, relay, ${engine}`
    const what = `recovery, ${engine}, to the storm without`
    return cpuGoal(readings, { what, ours: recoveryTitle(theirs), theirs, atMost: 1.3 })
  }
  const peaks = sizes.map((size) => medianOf(readings, `${first(size)}, ${RELAY}`, ({ peak }) => peak))
  const what = `peak memory of the relay to the value after the storm, ${sizes.map(first).join(' and ')}`
  return [
    ...ofEngine(MEMORY_ENGINE),
    ...ofEngine(REDIS_ENGINE),
    { what, measured: Math.max(...peaks), atMost: 1.5, unit: '' }
  ]
}
