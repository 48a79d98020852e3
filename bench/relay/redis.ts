import { cpuMicroseconds } from '../harness/cpu.js'
import { type BenchRedis, startBenchRedis } from '../harness/redis.js'
import { median, medianRatio } from '../harness/statistics.js'
import type { Block } from '../harness/suite.js'
import { goalTable, roundsText, table } from '../harness/table.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import type { Reading } from './report.js'
import { KEY, type RunningServer } from './running-server.js'
import { RELAY, startServer } from './servers.js'

export interface RedisSuiteOptions {
  readonly rounds: number
  readonly seconds: number
}

const DATA = positionBatch()
/** Concurrent publish requests. With one subscriber the cost of publishing dominates. */
const IN_FLIGHT = 64

const MEMORY_ENGINE = 'memory engine'
const REDIS_ENGINE = 'Redis engine'

/** A steady load: some floors with few viewers each. */
const CHANNELS = 100
const SUBSCRIBERS = 1000
const PER_SECOND = 500

interface EngineReading extends Reading {
  /** CPU time of Redis for one publication. */
  readonly redis: number
  /** CPU time of the relay for one delivery at the fixed rate. */
  readonly fixed: number
}

/** Compares a relay with the memory engine and one with Redis, which take turns. */
export const redisBlock = async ({ rounds, seconds }: RedisSuiteOptions): Promise<Block> => {
  const redis = await startBenchRedis()
  if (redis === null) return { name: 'redis', markdown: 'Not measured: there is no redis-server on the PATH.' }
  const load = new Load()
  const servers = new Map<string, RunningServer>()
  const readings = new Map<string, EngineReading[]>([
    [MEMORY_ENGINE, []],
    [REDIS_ENGINE, []]
  ])
  try {
    servers.set(MEMORY_ENGINE, await startServer(RELAY))
    servers.set(REDIS_ENGINE, await startServer(RELAY, undefined, { RELAY_ENGINE: 'redis', REDIS_URL: redis.url }))
    for (let round = -1; round < rounds; round++) {
      for (const [name, server] of servers) {
        const reading = await read(load, server, redis, seconds)
        // The first round only warms up.
        if (round >= 0) readings.get(name)?.push(reading)
      }
    }
    return redisReport(readings, rounds)
  } finally {
    await Promise.all([load.stop(), redis.stop(), ...[...servers.values()].map((server) => server.stop())])
  }
}

const read = async (load: Load, server: RunningServer, redis: BenchRedis, seconds: number): Promise<EngineReading> => {
  await load.run(openOrder(server, 1, 1))
  const before = cpuMicroseconds(redis.pid)
  const publish = { kind: 'publish', ports: server.ports, key: KEY, data: DATA, channels: 1, connections: 1 } as const
  const reading = await measure(load, server, { ...publish, inFlight: IN_FLIGHT, seconds }, 'count')
  const published = (reading.serverShare * 1e6) / reading.value
  const cpu = (cpuMicroseconds(redis.pid) - before) / seconds / published
  await closeAll(load)
  await load.run(openOrder(server, SUBSCRIBERS, CHANNELS))
  const steady = { ...publish, channels: CHANNELS, connections: 8, perSecond: PER_SECOND, seconds }
  const { value: fixed } = await measure(load, server, steady, 'deliveries')
  await closeAll(load)
  return { ...reading, redis: cpu, fixed }
}

const redisReport = (readings: ReadonlyMap<string, readonly EngineReading[]>, rounds: number): Block => {
  const of = (name: string, pick: (reading: EngineReading) => number): number =>
    median((readings.get(name) ?? []).map(pick))
  const ratio = (pick: (reading: EngineReading) => number): number =>
    medianRatio((readings.get(MEMORY_ENGINE) ?? []).map(pick), (readings.get(REDIS_ENGINE) ?? []).map(pick))
  return {
    name: 'redis',
    markdown: [
      `Medians of ${roundsText(rounds)}; one publisher with ${IN_FLIGHT} requests in flight over one connection, 2.5 KB each, one subscriber. The last column is ${CHANNELS} channels of ${SUBSCRIBERS / CHANNELS} subscribers at ${PER_SECOND} publications per second. Redis shares the core of the load.`,
      table(
        ['publishing', 'CPU µs/publish', 'of Redis', 'publishes/s', 'server/load %', 'fixed rate: CPU µs/delivery'],
        [...readings.keys()].map((name) => [
          name,
          of(name, ({ value }) => value).toFixed(1),
          of(name, ({ redis }) => redis).toFixed(1),
          of(name, ({ rate }) => rate).toFixed(0),
          `${(of(name, ({ serverShare }) => serverShare) * 100).toFixed(0)}/${(of(name, ({ loadShare }) => loadShare) * 100).toFixed(0)}`,
          of(name, ({ fixed }) => fixed).toFixed(1)
        ])
      ),
      goalTable([
        {
          what: 'publishes per second, memory engine to Redis engine',
          measured: ratio(({ rate }) => rate),
          atMost: 1 / 0.75,
          unit: ''
        },
        {
          what: 'CPU time per delivery at the fixed rate, Redis engine to memory engine',
          measured: 1 / ratio(({ fixed }) => fixed),
          atMost: 1.3,
          unit: ''
        }
      ])
    ].join('\n\n')
  }
}
