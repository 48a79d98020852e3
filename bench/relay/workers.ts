import { availableParallelism } from 'node:os'
import { median, medianRatio } from '../harness/statistics.js'
import { goalTable, table } from '../harness/table.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import type { Reading } from './report.js'
import { KEY, RELAY, type RunningServer, startServer } from './servers.js'

export interface WorkersOptions {
  readonly rounds: number
  readonly seconds: number
}

const SUBSCRIBERS = 1000
const WORKERS = 2
const DATA = positionBatch()

/**
 * With a core for the load beside two for the relay, what counts is how much more two workers deliver. Without, the load
 * takes part of the second, and what counts is the CPU time of all processes of the relay for each delivery.
 */
const HAS_CORES = availableParallelism() > WORKERS
const SERVER_CORES = '0,1'
const LOAD_CORES = HAS_CORES ? `2-${availableParallelism() - 1}` : '1'

const SATURATED = 'fan-out, 8 on their way for each process'
const FIXED = 'fan-out, 50 publishes/s'
const SCENARIOS = [SATURATED, FIXED]
const paceOf = (scenario: string, workers: number): { inFlight: number } | { perSecond: number } =>
  scenario === SATURATED ? { inFlight: 8 * workers } : { perSecond: 50 }

/** One process beside two workers, the two taking turns. */
export const workersSuite = async ({ rounds, seconds }: WorkersOptions): Promise<string> => {
  const load = new Load(LOAD_CORES)
  const servers = new Map<number, RunningServer>()
  const readings = new Map<string, Reading[]>()
  try {
    for (const workers of [1, WORKERS]) {
      servers.set(workers, await startServer(RELAY, SERVER_CORES, { RELAY_WORKERS: String(workers) }))
    }
    for (let round = -1; round < rounds; round++) {
      for (const [workers, server] of servers) {
        await load.run(openOrder(server, SUBSCRIBERS, 1))
        for (const scenario of SCENARIOS) {
          const publish = { kind: 'publish', key: KEY, data: DATA, channels: 1, connections: 8, seconds } as const
          const reading = await measure(
            load,
            server,
            { ...publish, port: server.port, ...paceOf(scenario, workers) },
            'deliveries'
          )
          // The first round only warms up.
          const key = `${scenario} | ${nameOf(workers)}`
          if (round >= 0) readings.set(key, [...(readings.get(key) ?? []), reading])
        }
        await closeAll(load)
      }
    }
    return workersReport(readings, rounds)
  } finally {
    await Promise.all([load.stop(), ...[...servers.values()].map((server) => server.stop())])
  }
}

const nameOf = (workers: number): string => (workers === 1 ? 'one process' : `${workers} workers and their owner`)

const workersReport = (readings: ReadonlyMap<string, readonly Reading[]>, rounds: number): string => {
  const all = (scenario: string, workers: number): readonly Reading[] =>
    readings.get(`${scenario} | ${nameOf(workers)}`) ?? []
  const of = (scenario: string, workers: number, pick: (reading: Reading) => number): number =>
    median(all(scenario, workers).map(pick))
  const tables = SCENARIOS.map((scenario) =>
    table(
      [scenario, 'CPU µs/delivery', 'per second', 'p50 ms', 'p99 ms', 'server/load %'],
      [1, WORKERS].map((workers) => {
        const shares = [
          of(scenario, workers, (each) => each.serverShare),
          of(scenario, workers, (each) => each.loadShare)
        ]
        return [
          nameOf(workers),
          of(scenario, workers, ({ value }) => value).toFixed(2),
          of(scenario, workers, ({ rate }) => rate).toFixed(0),
          of(scenario, workers, ({ p50 }) => p50).toFixed(1),
          of(scenario, workers, ({ p99 }) => p99).toFixed(1),
          shares.map((share) => (share * 100).toFixed(0)).join('/')
        ]
      })
    )
  )
  const ratio = (scenario: string, pick: (reading: Reading) => number): number =>
    medianRatio(all(scenario, WORKERS).map(pick), all(scenario, 1).map(pick))
  const goals = SCENARIOS.map((scenario) => ({
    what: `${scenario}: CPU time per delivery, ${WORKERS} workers : one process`,
    measured: ratio(scenario, ({ value }) => value),
    atMost: 1.1,
    unit: ''
  }))
  const faster = ratio(SATURATED, ({ rate }) => rate)
  return [
    '## Relay with workers\n',
    `Medians of ${rounds} rounds, ${SUBSCRIBERS} subscribers of one channel. ${
      HAS_CORES
        ? `The relay has two cores: ${WORKERS} workers deliver ${faster.toFixed(2)} times what one process does (goal: 1.70).`
        : 'The load shares one of the two cores: only CPU time can be compared.'
    }\n`,
    ...tables.map((each) => `${each}\n`),
    goalTable(goals)
  ].join('\n')
}
