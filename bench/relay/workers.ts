import { cpus } from 'node:os'
import { median, medianRatio } from '../harness/statistics.js'
import type { Block } from '../harness/suite.js'
import { goalTable, roundsText, table } from '../harness/table.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import type { Reading } from './report.js'
import { KEY, type RunningServer, sideBySide } from './running-server.js'
import { RELAY, startServer } from './servers.js'

export interface WorkersOptions {
  readonly rounds: number
  readonly seconds: number
}

const SUBSCRIBERS = 1000
const WORKERS = 2

/**
 * With three cores, the rates of one process and of two workers are compared. With two, the load generator shares a core
 * with the relay, and only the CPU time per delivery can be compared.
 */
const CORES = cpus().length
const HAS_CORES = CORES > WORKERS
const SERVER_CORES = '0,1'
const LOAD_CORES = HAS_CORES ? `2-${CORES - 1}` : '1'

const SATURATED = 'fan-out, 8 in flight for each process'
const FIXED = 'fan-out, 50 publishes/s'
const SCENARIOS = [SATURATED, FIXED]

const ALONE = 'one process'
const TOGETHER = `${WORKERS} workers and their primary`
/** The cost of two processes on these cores without IPC. */
const APART = `${WORKERS} independent relays`
const SETUPS = [ALONE, TOGETHER, APART]

const startSetup = async (setup: string): Promise<RunningServer> => {
  const start = (workers: number) => startServer(RELAY, SERVER_CORES, { RELAY_WORKERS: String(workers) })
  if (setup !== APART) return start(setup === ALONE ? 1 : WORKERS)
  return sideBySide([await start(1), await start(1)])
}

const paceOf = (scenario: string, setup: string): { inFlight: number } | { perSecond: number } =>
  scenario === SATURATED ? { inFlight: setup === ALONE ? 8 : 8 * WORKERS } : { perSecond: 50 }

const PUBLISH = { kind: 'publish', key: KEY, data: positionBatch(), channels: 1, connections: 8 } as const

/** Compares one process with two workers and with two independent relays, which take turns. */
export const workersBlock = async ({ rounds, seconds }: WorkersOptions): Promise<Block> => {
  const load = new Load(LOAD_CORES)
  const servers = new Map<string, RunningServer>()
  const readings = new Map<string, Reading[]>()
  try {
    for (const setup of SETUPS) servers.set(setup, await startSetup(setup))
    for (let round = -1; round < rounds; round++) {
      for (const [setup, server] of servers) {
        await load.run(openOrder(server, SUBSCRIBERS, 1))
        for (const scenario of SCENARIOS) {
          const order = { ...PUBLISH, seconds, ports: server.ports, ...paceOf(scenario, setup) }
          const reading = await measure(load, server, order, 'deliveries')
          const key = keyOf(scenario, setup)
          // The first round only warms up.
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

const keyOf = (scenario: string, setup: string): string => `${scenario} | ${setup}`

const workersReport = (readings: ReadonlyMap<string, readonly Reading[]>, rounds: number): Block => {
  const all = (scenario: string, setup: string, pick: (reading: Reading) => number): number[] =>
    (readings.get(keyOf(scenario, setup)) ?? []).map(pick)
  const tables = SCENARIOS.map((scenario) =>
    table(
      [scenario, 'CPU µs/delivery', 'deliveries/s', 'server/load %'],
      SETUPS.map((setup) => {
        const of = (pick: (reading: Reading) => number): number => median(all(scenario, setup, pick))
        const shares = [of(({ serverShare }) => serverShare), of(({ loadShare }) => loadShare)]
        return [
          setup,
          of(({ value }) => value).toFixed(2),
          of(({ rate }) => rate).toFixed(0),
          shares.map((share) => (share * 100).toFixed(0)).join('/')
        ]
      })
    )
  )
  const ratio = (scenario: string, to: string, pick: (reading: Reading) => number): number =>
    medianRatio(all(scenario, TOGETHER, pick), all(scenario, to, pick))
  const goals = SCENARIOS.flatMap((scenario) =>
    [ALONE, APART].map((to) => ({
      what: `${scenario}: CPU time per delivery, ${TOGETHER} to ${to}`,
      measured: ratio(scenario, to, ({ value }) => value),
      // Two processes find fewer publications per turn of the event loop, so they write less of them together.
      atMost: scenario === SATURATED && to === ALONE ? 1.25 : 1.1,
      unit: ''
    }))
  )
  const faster = ratio(SATURATED, ALONE, ({ rate }) => rate)
  const cores = HAS_CORES
    ? `The relay has two cores: ${WORKERS} workers deliver ${faster.toFixed(2)} times what one process does (goal: 1.70).`
    : 'The load shares one of the two cores: only CPU time can be compared.'
  return {
    name: 'workers',
    markdown: [
      `Medians of ${roundsText(rounds)}, ${SUBSCRIBERS} subscribers of one channel. ${cores}`,
      ...tables,
      goalTable(goals)
    ].join('\n\n')
  }
}
