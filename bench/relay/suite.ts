import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { residentMebibytes } from '../harness/cpu.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import { redisSuite } from './redis.js'
import { type Reading, Readings, report } from './report.js'
import {
  CONNECT,
  FAN_OUT_FIXED,
  FAN_OUT_SATURATED,
  MANY_CHANNELS_FIXED,
  MANY_CHANNELS_SATURATED,
  MEMORY
} from './scenarios.js'
import { KEY, type RunningServer, SERVER_NAMES, type ServerName, startServer } from './servers.js'
import { workersSuite } from './workers.js'

export interface RelaySuiteOptions {
  readonly rounds?: number | undefined
  /** Duration of each reading. */
  readonly seconds?: number | undefined
  /** Connections for the reading of memory. */
  readonly connections?: number | undefined
}

const SUBSCRIBERS = 1000
const MANY_CHANNELS = 100
const DATA = positionBatch()

/** Each round restarts all servers and takes a minute. */
const MEMORY_ROUNDS = 3

/** Measures CPU time per unit of work. The servers take turns, so that other programs disturb them equally. */
export const relaySuite = async ({
  rounds = 9,
  seconds = 1,
  connections = 10_000
}: RelaySuiteOptions): Promise<string> => {
  const load = new Load()
  const servers = new Map<ServerName, RunningServer>()
  const readings = new Readings()
  try {
    for (const name of SERVER_NAMES) servers.set(name, await startServer(name))
    for (const server of servers.values()) await warmUp(load, server)
    for (let round = -1; round < rounds; round++) {
      for (const [name, server] of servers) {
        // The first round only warms up.
        const note = (scenario: string, reading: Reading): void => {
          if (round >= 0) readings.add(scenario, name, reading)
        }
        await oneChannel(load, server, seconds, note)
        await manyChannels(load, server, seconds, note)
      }
    }
    for (const server of servers.values()) await server.stop()
    servers.clear()

    const clients = Math.min(connections, openFilesAllowed() - SPARE_FILES)
    for (let round = 0; round < Math.min(rounds, MEMORY_ROUNDS); round++) {
      for (const name of SERVER_NAMES) readings.add(MEMORY, name, await memory(load, name, clients))
    }
    const facts = { rounds, seconds, subscribers: SUBSCRIBERS, channels: MANY_CHANNELS, clients, connections }
    await load.stop()
    const scaled = [await workersSuite({ rounds, seconds }), await redisSuite({ rounds, seconds })]
    return [report(readings, facts), ...scaled].join('\n\n')
  } finally {
    await Promise.all([load.stop(), ...[...servers.values()].map((server) => server.stop())])
  }
}

const WARM_UPS = 5
const WARM_UP_SECONDS = 5

/** Runs until V8 has optimised the code, which takes some thousand calls. */
const warmUp = async (load: Load, server: RunningServer): Promise<void> => {
  for (let time = 0; time < WARM_UPS; time++) {
    await load.run(openOrder(server, SUBSCRIBERS, 1))
    await closeAll(load)
  }
  await manyChannels(load, server, WARM_UP_SECONDS, () => undefined)
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
const IDLE_MS = 3000

/** Starts a new process, connects and disconnects some clients as warm-up, then measures with all clients idle. */
const memory = async (load: Load, name: ServerName, clients: number): Promise<Reading> => {
  const server = await startServer(name)
  try {
    await load.run(openOrder(server, WARM_CLIENTS, 1))
    await closeAll(load)
    const [pid = 0] = server.pids
    const before = residentMebibytes(pid)
    const { seconds, share } = await load.run(openOrder(server, clients, 1))
    await setTimeout(IDLE_MS)
    const value = ((residentMebibytes(pid) - before) * 1024) / clients
    await closeAll(load)
    return { value, rate: clients / seconds, p50: 0, p99: 0, serverShare: 0, loadShare: share }
  } finally {
    await server.stop()
  }
}

const SPARE_FILES = 200

/** Node.js raises its limit to the hard limit, which `ulimit -Hn` or `prlimit` changes. */
const openFilesAllowed = (): number => {
  const [, hard = '0'] = /Max open files\s+\S+\s+(\S+)/.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard)
}
