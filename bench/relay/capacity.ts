import { setTimeout } from 'node:timers/promises'
import { type Costs, MEASURED } from '../../scripts/lib/capacity/costs.js'
import { fitCpuCosts } from '../../scripts/lib/capacity/fit.js'
import { writeMachineFile } from '../../scripts/lib/capacity/machine-file.js'
import { type CpuCosts, type RelayLoad, relayCores } from '../../scripts/lib/capacity/relay-cpu.js'
import { type MemoryCosts, type RelayContent, relayMebibytes } from '../../scripts/lib/capacity/relay-memory.js'
import { UserError } from '../../scripts/lib/command.js'
import { cpuMicroseconds, residentMebibytes } from '../harness/cpu.js'
import { connectionsAllowed } from '../harness/open-files.js'
import { SERVER_CORE } from '../harness/process.js'
import { median } from '../harness/statistics.js'
import type { Block, Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { table } from '../harness/table.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import { KEY, type RunningServer } from './running-server.js'
import { RELAY, startServer } from './servers.js'

interface CapacityLoad {
  readonly name: string
  readonly clients: number
  readonly channels: number
  /** Publications per second on all channels together. */
  readonly perSecond: number
  /** Position batches of 2.5 KB in a publication. */
  readonly batches: number
}

const load = (name: string, clients: number, channels: number, perSecond: number, batches = 1): CapacityLoad => ({
  name,
  clients,
  channels,
  perSecond,
  batches
})

/** The loads that the model must predict. */
const PREDICTED: readonly CapacityLoad[] = [
  load('1,000 subscribers of one channel, 20 publications/s', 1000, 1, 20),
  load('100 channels of 10, 500 publications/s in total', 1000, 100, 500),
  load('10,000 connections, 500 channels with 1 publication/s each', 10_000, 500, 500)
]

const IDLE = load('5,000 idle connections, compared with none', 5000, 100, 0)
const MANY_FLOORS = load('2,000 connections, 50 channels with 4 publications/s each', 2000, 50, 200)

/** Other loads, from which the costs of this machine are calculated. */
const CALIBRATION: readonly CapacityLoad[] = [
  load('one subscriber, 20 publications/s', 1, 1, 20),
  load('one subscriber, 100 publications/s', 1, 1, 100),
  load('one subscriber, 1,000 publications/s', 1, 1, 1000),
  load('300 subscribers of one channel, 20 publications/s', 300, 1, 20),
  load('the same with 20 KB', 300, 1, 20, 8),
  load('300 subscribers of one channel, 100 publications/s', 300, 1, 100),
  load('2,000 subscribers of one channel, 5 publications/s', 2000, 1, 5),
  MANY_FLOORS,
  load('500 connections, 100 channels with 3 publications/s each', 500, 100, 300),
  load('5,000 connections, 250 channels with 1 publication/s each', 5000, 250, 250),
  IDLE
]

const BATCH = positionBatch()
const dataOf = (batches: number): string => (batches === 1 ? BATCH : `[${Array(batches).fill(BATCH).join()}]`)

interface CpuReading {
  /** With the rate that the load generator achieved. */
  readonly load: RelayLoad
  readonly cores: number
}

const readCpu = async (
  generator: Load,
  server: RunningServer,
  wanted: CapacityLoad,
  seconds: number
): Promise<CpuReading> => {
  const { clients, channels, perSecond, batches } = wanted
  const isIdle = perSecond === 0
  const coresWithoutClients = isIdle ? await idleCores(server) : 0
  await generator.run(openOrder(server, clients, channels))
  const reading = isIdle
    ? { perSecond, cores: (await settledIdleCores(server)) - coresWithoutClients }
    : await readBusy(generator, server, wanted, seconds)
  await closeAll(generator)
  return {
    load: {
      // A busy reading ends before the first ping.
      connections: isIdle ? clients : 0,
      publishesPerSecond: reading.perSecond,
      receivedPerSecond: 0,
      deliveriesPerSecond: (reading.perSecond * clients) / channels,
      deliveryPauseMs: (1000 * channels) / reading.perSecond,
      payloadBytes: dataOf(batches).length
    },
    cores: reading.cores
  }
}

interface Utilisation {
  readonly perSecond: number
  readonly cores: number
}

const IDLE_SECONDS = 25

const idleCores = async ({ pids: [pid = 0] }: RunningServer): Promise<number> => {
  const [cpuBefore, startedAt] = [cpuMicroseconds(pid), performance.now()]
  await setTimeout(1000 * IDLE_SECONDS)
  return (cpuMicroseconds(pid) - cpuBefore) / 1000 / (performance.now() - startedAt)
}

/** After the garbage of the connects. Each connection is pinged once in the reading, 12.5 to 25 s after it was opened. */
const settledIdleCores = async (server: RunningServer): Promise<number> => {
  await setTimeout(SETTLE_MS)
  return await idleCores(server)
}

const WARM_UP_SECONDS = 1
/** Opening the clients takes up to 5 s, and the first ping is due 12.5 s after a connect. */
const MAX_SECONDS = 5

const readBusy = async (
  generator: Load,
  server: RunningServer,
  { channels, perSecond, batches }: CapacityLoad,
  seconds: number
): Promise<Utilisation> => {
  const { ports } = server
  const order = {
    kind: 'publish',
    ports,
    key: KEY,
    data: dataOf(batches),
    channels,
    connections: 8,
    perSecond
  } as const
  await generator.run({ ...order, seconds: WARM_UP_SECONDS })
  const { rate, serverShare } = await measure(generator, server, { ...order, seconds }, 'count')
  return { perSecond: rate, cores: serverShare }
}

interface MemoryReading {
  readonly content: RelayContent
  readonly mebibytes: number
}

const MEMORY_SECONDS = 15
const SETTLE_MS = 3000
const NO_LOAD = load('no connections', 0, 1, 0)

/** Memory of a new process with this load. */
const readMemory = async (generator: Load, wanted: CapacityLoad): Promise<MemoryReading> => {
  const { clients, channels, perSecond, batches } = wanted
  const server = await startServer(RELAY)
  try {
    if (clients > 0) await generator.run(openOrder(server, clients, channels))
    const published =
      perSecond === 0 ? 0 : (await readBusy(generator, server, wanted, MEMORY_SECONDS)).perSecond * MEMORY_SECONDS
    if (perSecond === 0) await setTimeout(SETTLE_MS)
    const stored = Math.min(published, channels * HISTORY_SIZE)
    const mebibytes = residentMebibytes(server.pids[0] ?? 0)
    await closeAll(generator)
    const content = { connections: clients, historyBytes: stored * dataOf(batches).length }
    return { content, mebibytes }
  } finally {
    await server.stop()
  }
}

/** CPU time of a connect with token and subscription. Large installations have workers or Redis, where it costs more. */
const readConnect = async (generator: Load): Promise<number> => {
  const server = await startServer(RELAY, SERVER_CORE, { RELAY_WORKERS: '2' })
  try {
    return (await measure(generator, server, openOrder(server, IDLE.clients, IDLE.channels), 'count')).value
  } finally {
    await server.stop()
  }
}

/** As in the configuration of the benchmark. */
const HISTORY_SIZE = 100

const memoryCosts = (none: MemoryReading, idle: MemoryReading, busy: MemoryReading): MemoryCosts => {
  const idleMib = none.mebibytes
  const connectionKib = ((idle.mebibytes - idleMib) * 1024) / idle.content.connections
  const withoutWork = relayMebibytes(busy.content, { idleMib, connectionKib, workMib: 0 })
  return { idleMib, connectionKib, workMib: Math.max(0, busy.mebibytes - withoutWork) }
}

/** The median of each value. The rates of one load hardly differ. */
const medianReading = (readings: readonly CpuReading[]): CpuReading => {
  const of = (pick: (reading: CpuReading) => number): number => median(readings.map(pick))
  return {
    load: {
      connections: of((reading) => reading.load.connections),
      publishesPerSecond: of((reading) => reading.load.publishesPerSecond),
      receivedPerSecond: 0,
      deliveriesPerSecond: of((reading) => reading.load.deliveriesPerSecond),
      deliveryPauseMs: of((reading) => reading.load.deliveryPauseMs),
      payloadBytes: of((reading) => reading.load.payloadBytes)
    },
    cores: of(({ cores }) => cores)
  }
}

/** Calculates the costs of this machine from some loads, predicts three others with them, and compares. */
const run = async ({ isQuick, machineFile, ...options }: SuiteOptions): Promise<SuiteResult> => {
  const { rounds = isQuick ? 1 : 5, seconds = isQuick ? 1 : 3 } = options
  if (seconds > MAX_SECONDS)
    throw new UserError(
      `capacity: --seconds may be at most ${MAX_SECONDS}, so that a reading ends before the first ping`
    )
  if (connectionsAllowed() < IDLE.clients)
    throw new UserError(
      `capacity opens ${IDLE.clients} connections; a process may open ${connectionsAllowed()} here (ulimit -Hn)`
    )
  const predicted = PREDICTED.filter(({ clients }) => clients <= connectionsAllowed())
  const readings = new Map<CapacityLoad, CpuReading[]>()
  const memory = new Map<CapacityLoad, MemoryReading>()
  let connectMicros: number
  const generator = new Load()
  try {
    const server = await startServer(RELAY)
    try {
      // The loads take turns, so that other programs disturb them equally. The first round only warms up.
      for (let round = -1; round < rounds; round++) {
        for (const each of [...CALIBRATION, ...predicted]) {
          if (round < 0 && each === IDLE) continue
          const reading = await readCpu(generator, server, each, round < 0 ? WARM_UP_SECONDS : seconds)
          if (round >= 0) readings.set(each, [...(readings.get(each) ?? []), reading])
        }
      }
    } finally {
      await server.stop()
    }
    for (const each of [NO_LOAD, IDLE, MANY_FLOORS, ...predicted]) memory.set(each, await readMemory(generator, each))
    connectMicros = await readConnect(generator)
  } finally {
    await generator.stop()
  }
  const cpuOf = (each: CapacityLoad): CpuReading => medianReading(readings.get(each) ?? [])
  const memoryOf = (each: CapacityLoad): MemoryReading =>
    memory.get(each) ?? {
      content: { connections: 0, historyBytes: 0 },
      mebibytes: Number.NaN
    }
  const costs = {
    ...fitCpuCosts(CALIBRATION.map(cpuOf)),
    ...memoryCosts(memoryOf(NO_LOAD), memoryOf(IDLE), memoryOf(MANY_FLOORS)),
    connectMicros
  }
  if (machineFile !== undefined) writeMachineFile(machineFile, costs)
  return { blocks: [capacityBlock({ rounds, seconds, predicted, cpuOf, memoryOf, costs })] }
}

export const capacitySuite: Suite = { blocks: ['capacity'], run, isOnRequest: true }

interface CapacityResult {
  readonly rounds: number
  readonly seconds: number
  readonly predicted: readonly CapacityLoad[]
  readonly cpuOf: (load: CapacityLoad) => CpuReading
  readonly memoryOf: (load: CapacityLoad) => MemoryReading
  readonly costs: CpuCosts & MemoryCosts & Pick<Costs, 'connectMicros'>
}

const MAX_DIFFERENCE = 0.2

const differenceText = (predicted: number, measured: number): string => {
  const difference = predicted / measured - 1
  const text = `${difference < 0 ? '−' : '+'}${Math.abs(difference * 100).toFixed(0)} %`
  return Math.abs(difference) > MAX_DIFFERENCE ? `**${text}**` : text
}

const capacityBlock = ({ rounds, seconds, predicted, cpuOf, memoryOf, costs }: CapacityResult): Block => {
  const cpuCells = (each: CapacityLoad): string[] => {
    const { load: achieved, cores } = cpuOf(each)
    const model = relayCores(achieved, costs)
    return [model.toFixed(3), cores.toFixed(3), differenceText(model, cores)]
  }
  const memoryCells = (each: CapacityLoad): string[] => {
    const { content, mebibytes } = memoryOf(each)
    const model = relayMebibytes(content, costs)
    return [model.toFixed(0), mebibytes.toFixed(0), differenceText(model, mebibytes)]
  }
  const costRows = Object.entries(costs).map(([name, cost]) => [
    name,
    cost.toPrecision(3),
    // `Object.entries` types the names as string.
    String(MEASURED[name as keyof Costs])
  ])
  return {
    name: 'capacity',
    markdown: [
      `Medians of ${rounds} rounds of ${seconds} s, without publications of ${IDLE_SECONDS} s. The costs are fitted to the loads of the second table; differences above 20 % are bold.`,
      table(
        ['load', 'cores: model', 'measured', 'difference', 'MiB: model', 'measured', 'difference'],
        predicted.map((each) => [each.name, ...cpuCells(each), ...memoryCells(each)])
      ),
      table(
        ['load of the calibration', 'cores: model', 'measured', 'difference'],
        CALIBRATION.map((each) => [each.name, ...cpuCells(each)])
      ),
      table(['cost', 'this machine', 'documentation'], costRows)
    ].join('\n\n')
  }
}
