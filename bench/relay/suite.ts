import { setTimeout } from 'node:timers/promises'
import { residentMebibytes } from '../harness/cpu.js'
import { connectionsAllowed } from '../harness/open-files.js'
import type { Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import { redisBlock } from './redis.js'
import { protobufBlock, type Reading, Readings, relayBlock, relayCapacities } from './report.js'
import { KEY, type RunningServer } from './running-server.js'
import {
  CONNECT,
  FAN_OUT_FIXED,
  FAN_OUT_SATURATED,
  MANY_CHANNELS_FIXED,
  MANY_CHANNELS_SATURATED,
  MEMORY
} from './scenarios.js'
import { installedServers, type ServerName, startServer } from './servers.js'
import { workersBlock } from './workers.js'

const SUBSCRIBERS = 1000
const MANY_CHANNELS = 100
const DATA = positionBatch()

/** How much is measured. */
interface Extent {
  readonly rounds: number
  readonly seconds: number
  readonly connections: number
  /** Connects of all subscribers before the first round, until V8 has optimised the code. */
  readonly warmUps: number
  readonly warmUpSeconds: number
  /** Each round restarts all servers. */
  readonly memoryRounds: number
  /** Time between the last connect and the reading of memory. */
  readonly idleMs: number
}

const FULL: Extent = {
  rounds: 9,
  seconds: 1,
  connections: 10_000,
  warmUps: 5,
  warmUpSeconds: 5,
  memoryRounds: 3,
  idleMs: 3000
}
const QUICK: Extent = {
  rounds: 1,
  seconds: 0.3,
  connections: 1500,
  warmUps: 0,
  warmUpSeconds: 0.3,
  memoryRounds: 1,
  idleMs: 500
}

const extentOf = ({ isQuick, rounds, seconds, connections }: SuiteOptions): Extent => {
  const extent = isQuick ? QUICK : FULL
  return {
    ...extent,
    rounds: rounds ?? extent.rounds,
    seconds: seconds ?? extent.seconds,
    connections: connections ?? extent.connections,
    memoryRounds: Math.min(rounds ?? extent.rounds, extent.memoryRounds)
  }
}

/** Measures CPU time per unit of work. The servers take turns, so that other programs disturb them equally. */
const run = async (options: SuiteOptions): Promise<SuiteResult> => {
  const extent = extentOf(options)
  const { rounds, seconds, connections, memoryRounds } = extent
  const load = new Load()
  const servers = new Map<ServerName, RunningServer>()
  const names = installedServers()
  const readings = new Readings(names)
  try {
    for (const name of names) servers.set(name, await startServer(name))
    for (const server of servers.values()) await warmUp(load, server, extent)
    for (let round = 0; round < rounds; round++) {
      for (const [name, server] of servers) {
        const note: Note = (scenario, reading) => readings.add(scenario, name, reading)
        await oneChannel(load, server, seconds, note)
        await manyChannels(load, server, seconds, note)
      }
    }
    for (const server of servers.values()) await server.stop()
    servers.clear()

    const clients = Math.min(connections, connectionsAllowed())
    for (let round = 0; round < memoryRounds; round++) {
      for (const name of names) readings.add(MEMORY, name, await memory(load, name, clients, extent.idleMs))
    }
    await load.stop()
    return {
      blocks: [
        relayBlock(readings, { rounds, seconds, memoryRounds, clients, connections }),
        protobufBlock(readings),
        await workersBlock({ rounds, seconds }),
        await redisBlock({ rounds, seconds })
      ],
      capacities: relayCapacities(readings)
    }
  } finally {
    await Promise.all([load.stop(), ...[...servers.values()].map((server) => server.stop())])
  }
}

export const relaySuite: Suite = { blocks: ['relay', 'protobuf', 'workers', 'redis'], run }

const warmUp = async (load: Load, server: RunningServer, { warmUps, warmUpSeconds }: Extent): Promise<void> => {
  for (let time = 0; time < warmUps; time++) {
    await load.run(openOrder(server, SUBSCRIBERS, 1))
    await closeAll(load)
  }
  await oneChannel(load, server, warmUpSeconds / 5, () => undefined)
  await manyChannels(load, server, warmUpSeconds, () => undefined)
}

type Note = (scenario: string, reading: Reading) => void

const oneChannel = async (load: Load, server: RunningServer, seconds: number, note: Note): Promise<void> => {
  const publish = {
    kind: 'publish',
    ports: server.ports,
    key: KEY,
    data: DATA,
    channels: 1,
    connections: 8,
    seconds
  } as const
  note(CONNECT, await measure(load, server, openOrder(server, SUBSCRIBERS, 1), 'count'))
  note(FAN_OUT_SATURATED, await measure(load, server, { ...publish, inFlight: 8 }, 'deliveries'))
  note(FAN_OUT_FIXED, await measure(load, server, { ...publish, perSecond: 20 }, 'deliveries'))
  await closeAll(load)
}

const manyChannels = async (load: Load, server: RunningServer, seconds: number, note: Note): Promise<void> => {
  const publish = {
    kind: 'publish',
    ports: server.ports,
    key: KEY,
    data: DATA,
    channels: MANY_CHANNELS,
    connections: 8,
    seconds
  } as const
  note(CONNECT, await measure(load, server, openOrder(server, SUBSCRIBERS, MANY_CHANNELS), 'count'))
  note(MANY_CHANNELS_SATURATED, await measure(load, server, { ...publish, inFlight: 64 }, 'count'))
  note(MANY_CHANNELS_FIXED, await measure(load, server, { ...publish, perSecond: 500 }, 'count'))
  await closeAll(load)
}

const WARM_CLIENTS = 500

/** Starts a new process, connects and disconnects some clients as warm-up, then measures with all clients idle. */
const memory = async (load: Load, name: ServerName, clients: number, idleMs: number): Promise<Reading> => {
  const server = await startServer(name)
  try {
    await load.run(openOrder(server, WARM_CLIENTS, 1))
    await closeAll(load)
    const [pid = 0] = server.pids
    const before = residentMebibytes(pid)
    const { seconds, share } = await load.run(openOrder(server, clients, 1))
    await setTimeout(idleMs)
    const value = ((residentMebibytes(pid) - before) * 1024) / clients
    await closeAll(load)
    return { value, rate: clients / seconds, p50: 0, p99: 0, p999: 0, serverShare: 0, loadShare: share }
  } finally {
    await server.stop()
  }
}
