import { residentMebibytes } from '../harness/cpu.js'
import { median, medianRatio } from '../harness/statistics.js'
import type { Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { goalTable, grouped, table } from '../harness/table.js'
import { Load, measure, openOrder } from './load-process.js'
import { positionBatch } from './position-batch.js'
import type { Reading } from './report.js'
import { KEY, type RunningServer } from './running-server.js'
import { RELAY, SEND_LOOP, type ServerName, startServer } from './servers.js'

const SUBSCRIBERS = 1000
const SLOW_READERS = 10
const SERVERS = [RELAY, SEND_LOOP] as const

const ALL_READ = 'all clients read'
const SOME_SLOW = `beside ${SLOW_READERS} slow readers`
const SCENARIOS = [ALL_READ, SOME_SLOW]

/** How much is measured: so many minutes of each server and scenario. */
interface Extent {
  readonly minutes: number
  readonly turnSeconds: number
}

/** A slow reader fills the buffers of the kernel within the first 30 s of a turn. */
const FULL: Extent = { minutes: 10, turnSeconds: 60 }
const QUICK: Extent = { minutes: 0.05, turnSeconds: 1 }

const PUBLISH = { kind: 'publish', key: KEY, data: positionBatch(), channels: 1, connections: 1 } as const
/** The rate at which the CPU time of a delivery is measured before the run. */
const TRIAL_RATE = 40
const TRIAL_SECONDS = 5
const CORE_SHARE = 0.5

/** A server with its clients, which stay connected between the turns. Slow readers connect at the beginning of each turn. */
interface Setup {
  readonly scenario: string
  readonly name: ServerName
  readonly server: RunningServer
  readonly load: Load
  readonly readings: Reading[]
}

const startSetup = async (scenario: string, name: ServerName): Promise<Setup> => ({
  scenario,
  name,
  server: await startServer(name),
  load: new Load(),
  readings: []
})

const read = ({ scenario, load, server }: Setup, perSecond: number, seconds: number): Promise<Reading> => {
  const slowReaders = scenario === SOME_SLOW ? SLOW_READERS : 0
  return measure(load, server, { ...PUBLISH, ports: server.ports, perSecond, seconds, slowReaders }, 'deliveries')
}

/** Latencies over minutes, at the rate that takes half of a core of the relay. The servers take turns. */
const run = async ({ isQuick, minutes: wanted }: SuiteOptions): Promise<SuiteResult> => {
  const { minutes, turnSeconds } = { ...(isQuick ? QUICK : FULL), ...(wanted === undefined ? {} : { minutes: wanted }) }
  const setups: Setup[] = []
  try {
    for (const scenario of SCENARIOS) for (const name of SERVERS) setups.push(await startSetup(scenario, name))
    for (const { load, server } of setups) await load.run(openOrder(server, SUBSCRIBERS, 1))
    const trials: Reading[] = []
    for (const setup of setups) trials.push(await read(setup, TRIAL_RATE, isQuick ? 1 : TRIAL_SECONDS))
    const perSecond = Math.round((CORE_SHARE * 1e6) / ((trials[0]?.value ?? Number.NaN) * SUBSCRIBERS))
    const turns = Math.ceil((minutes * 60) / turnSeconds)
    for (let turn = 0; turn < turns; turn++) {
      for (const setup of setups) setup.readings.push(await read(setup, perSecond, turnSeconds))
    }
    return { blocks: [{ name: 'steady latency', markdown: report(setups, { minutes, turnSeconds }, perSecond) }] }
  } finally {
    await Promise.all(setups.flatMap(({ load, server }) => [load.stop(), server.stop()]))
  }
}

const report = (setups: readonly Setup[], { minutes, turnSeconds }: Extent, perSecond: number): string => {
  const p99Of = (scenario: string, name: ServerName): number[] =>
    setups.find((each) => each.scenario === scenario && each.name === name)?.readings.map(({ p99 }) => p99) ?? []
  return [
    `${minutes} minutes of each row in turns of ${turnSeconds} s: 2.5 KB to ${grouped(SUBSCRIBERS)} subscribers of one channel, ${perSecond} publishes/s. Medians of the turns.`,
    table(
      ['', 'p50 ms', 'p99 ms', 'p99.9 ms', 'p99 ms of the worst turn', 'server CPU', 'memory at the end, MiB'],
      setups.map(({ scenario, name, server, readings }) => {
        const of = (pick: (reading: Reading) => number): number => median(readings.map(pick))
        return [
          `${name}, ${scenario}`,
          of(({ p50 }) => p50).toFixed(1),
          of(({ p99 }) => p99).toFixed(1),
          of(({ p999 }) => p999).toFixed(1),
          Math.max(...p99Of(scenario, name)).toFixed(1),
          `${(of(({ serverShare }) => serverShare) * 100).toFixed(0)} %`,
          residentMebibytes(server.pids[0] ?? 0).toFixed(0)
        ]
      })
    ),
    goalTable(
      SCENARIOS.map((scenario) => ({
        what: `p99, ${scenario}: ${RELAY} to ${SEND_LOOP}`,
        measured: medianRatio(p99Of(scenario, RELAY), p99Of(scenario, SEND_LOOP)),
        atMost: 1.2,
        unit: ''
      }))
    )
  ].join('\n\n')
}

export const steadyLatencySuite: Suite = { blocks: ['steady latency'], run, isOnRequest: true }
