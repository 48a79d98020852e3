import type { Costs } from './costs.js'
import { relayCores } from './relay-cpu.js'
import { relayMebibytes } from './relay-memory.js'

// Sums over the measured costs. docs/how-to/scale.md explains each of them.

export interface Demand {
  /** Browsers at the same time. */
  readonly connections: number
  readonly floors: number
  /** Position batches per floor and second. */
  readonly rate: number
  readonly payloadBytes: number
  /** Publications in the history of a floor. */
  readonly history: number
  /** Cores of one machine; each runs one relay process. */
  readonly cores: number
  readonly memoryGib: number
  readonly networkGbit: number
  /** The load balancer sends all clients of a floor to the same relay process. */
  readonly isSorted: boolean
  /** Seconds within which all clients of a failed machine are connected again. */
  readonly returnSeconds: number
}

export const DEFAULT_DEMAND: Demand = {
  connections: 10_000,
  floors: 500,
  rate: 1,
  payloadBytes: 2500,
  history: 60,
  cores: 4,
  memoryGib: 8,
  networkGbit: 10,
  isSorted: false,
  returnSeconds: 60
}

export interface Plan {
  readonly publishesPerSecond: number
  readonly deliveriesPerSecond: number
  /** Relay processes that a publication reaches, on average. */
  readonly spread: number
  readonly processes: number
  readonly machines: number
  /** The resource that determines the number of machines. */
  readonly limit: Limit
  /** In steady state. */
  readonly coresUsed: number
  /** While the clients of a failed machine connect again. */
  readonly coresAfterFailure: number
  /** Connections of a process while one machine is down. Each needs a file descriptor. */
  readonly processConnections: number
  /** Seconds until the clients of a restarted machine are connected again, with the free half of the remaining cores. */
  readonly restartSeconds: number
  /** All machines one after the other, each within `returnSeconds`. */
  readonly rollingRestartMinutes: number
  /** Without the history. */
  readonly memoryGib: number
  /** In the process, in the primary or in Redis. */
  readonly historyGib: number
  readonly outGbit: number
  /** 0 where one machine is enough. */
  readonly redisShards: number
  readonly redisOutGbit: number
}

export type Limit = 'CPU' | 'memory' | 'network' | 'one machine to spare'

/** The share of a core, network card or Redis that is planned; the rest is for bursts and failures. */
export const HEADROOM = 0.5

/** WebSocket frame, TLS record, TCP and IP headers of one delivery. */
const OVERHEAD_BYTES = 120

const GBIT = 1e9 / 8
const MAX_ROUNDS = 50

export const planFor = (demand: Demand, costs: Costs): Plan => {
  const { connections, floors, rate, cores } = demand
  const publishesPerSecond = floors * rate
  const deliveriesPerSecond = connections * rate
  const processes = processesFor(demand, costs)
  const onCpu = Math.ceil(processes / cores)
  // The history of several machines is in Redis.
  const memory = memoryNeed(demand, costs, processes) + (onCpu === 1 ? historyGib(demand) : 0)
  const machinesFor: readonly (readonly [Limit, number])[] = [
    ['CPU', onCpu],
    ['memory', Math.ceil(memory / (HEADROOM * demand.memoryGib))],
    ['network', Math.ceil(outGbit(demand) / (HEADROOM * demand.networkGbit))],
    // One machine may fail.
    ['one machine to spare', connections > 10_000 ? 2 : 1]
  ]
  const [limit, machines] = machinesFor.reduce((most, each) => (each[1] > most[1] ? each : most))
  const running = Math.max(processes, machines)
  const spread = spreadOf(demand, running)
  // A single machine gets its own clients back.
  const remaining = machines === 1 ? running : running - running / machines
  // The processes of one machine need no Redis between them.
  const needsRedis = machines > 1
  return {
    publishesPerSecond,
    deliveriesPerSecond,
    spread,
    processes: running,
    machines,
    limit,
    coresUsed: steadyCores(demand, costs, running),
    coresAfterFailure: coreNeed(demand, costs, running),
    processConnections: connections / remaining,
    restartSeconds: ((connections / machines) * costs.connectMicros) / 1e6 / (remaining * HEADROOM),
    rollingRestartMinutes: (machines * demand.returnSeconds) / 60,
    memoryGib: memoryNeed(demand, costs, running),
    historyGib: historyGib(demand),
    outGbit: outGbit(demand),
    redisShards: needsRedis ? redisShards(publishesPerSecond, spread, demand, costs) : 0,
    redisOutGbit: needsRedis ? (publishesPerSecond * spread * demand.payloadBytes) / GBIT : 0
  }
}

/**
 * The number of processes that leaves half of every core free. The work depends on this number: more processes receive each
 * publication, and fewer clients reconnect when a machine fails. It is raised until it is enough, then lowered while it is.
 */
const processesFor = (demand: Demand, costs: Costs): number => {
  const isEnough = (count: number): boolean => coreNeed(demand, costs, count) <= count * HEADROOM
  let processes = 1
  for (let round = 0; round < MAX_ROUNDS && !isEnough(processes); round++)
    processes = Math.ceil(coreNeed(demand, costs, processes) / HEADROOM)
  while (processes > 1 && isEnough(processes - 1)) processes--
  return processes
}

/** The expected number of processes that have a client of a floor, if clients are distributed at random. */
export const spreadOf = ({ connections, floors, isSorted }: Demand, processes: number): number => {
  if (isSorted) return 1
  const perFloor = connections / floors
  return processes * (1 - (1 - 1 / processes) ** perFloor)
}

/** In cores that are fully busy. */
const steadyCores = (demand: Demand, costs: Costs, processes: number): number => {
  const { connections, floors, rate, payloadBytes } = demand
  const publishes = floors * rate
  // Redis or the primary sends each publication to all processes with subscribers, also to the one that was called.
  const received = processes === 1 ? 0 : publishes * spreadOf(demand, processes)
  const perProcess = {
    connections: connections / processes,
    publishesPerSecond: publishes / processes,
    receivedPerSecond: received / processes,
    deliveriesPerSecond: (connections * rate) / processes,
    deliveryPauseMs: 1000 / rate,
    payloadBytes
  }
  return processes * relayCores(perProcess, costs) + (received * costs.receiveMicros) / 1e6
}

/** With the clients of a failed machine, which connect to the others. */
const coreNeed = (demand: Demand, costs: Costs, processes: number): number => {
  const { connections, cores, returnSeconds } = demand
  const returning = processes === 1 ? connections : (connections / processes) * Math.min(cores, processes)
  return steadyCores(demand, costs, processes) + ((returning / returnSeconds) * costs.connectMicros) / 1e6
}

/** Without the history, which is in the process, in the primary or in Redis. */
const memoryNeed = ({ connections }: Demand, costs: Costs, processes: number): number => {
  const perProcess = relayMebibytes({ connections: connections / processes, historyBytes: 0 }, costs)
  return (processes * perProcess + (connections * costs.kernelKib) / 1024) / 1024
}

const historyGib = ({ floors, history, payloadBytes }: Demand): number => (floors * history * payloadBytes) / 2 ** 30

const outGbit = ({ connections, rate, payloadBytes }: Demand): number =>
  (connections * rate * (payloadBytes + OVERHEAD_BYTES)) / GBIT

const redisShards = (
  publishes: number,
  spread: number,
  { payloadBytes, networkGbit }: Demand,
  costs: Costs
): number => {
  const busy = (publishes * (costs.redisPublishMicros + spread * costs.redisPushMicros)) / 1e6
  const out = (publishes * spread * payloadBytes) / GBIT
  return Math.max(1, Math.ceil(busy / HEADROOM), Math.ceil(out / (HEADROOM * networkGbit)))
}
