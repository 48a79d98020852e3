import { setTimeout } from 'node:timers/promises'
import { milliseconds } from '../harness/chart.js'
import { type LatencyReport, latencyReport } from '../harness/latency-report.js'
import type { SuiteOptions } from '../harness/suite.js'
import { grouped, roundsText } from '../harness/table.js'
import { closeAll, Load, measure, openOrder } from './load-process.js'
import { type Reading, Readings } from './report.js'
import { KEY, type RunningServer } from './running-server.js'
import { installedServers, RELAY_PROTOBUF, startServer } from './servers.js'

const PER_SECOND = 20
/** Clients that parse publications. The load generator cannot parse all of them for 10,000 clients. */
const PARSING = 1000

/** One position, because 10,000 clients would receive 500 MB/s of position batches. */
const DATA = JSON.stringify({
  type: 'position',
  data: { transmitterId: 'tx-1000', position: { x: 12.25, y: 7.5 }, floorId: 'floor-7', timestamp: 1763200000000 }
})

const FULL = { rounds: 3, seconds: 5, sizes: [1000, 10_000], settleMs: 1000 } as const
const QUICK = { rounds: 1, seconds: 1, sizes: [1000], settleMs: 200 } as const

/** Latency of deliveries to all subscribers of one channel at a fixed rate. */
export const relayLatency = async ({ isQuick, ...options }: SuiteOptions): Promise<LatencyReport> => {
  const { sizes, settleMs, ...defaults } = isQuick ? QUICK : FULL
  const { rounds = defaults.rounds, seconds = defaults.seconds } = options
  const names = installedServers().filter((name) => name !== RELAY_PROTOBUF)
  const readings = new Readings(names)
  const load = new Load()
  try {
    for (let round = 0; round < rounds; round++) {
      for (const size of sizes) {
        for (const name of names) {
          const server = await startServer(name)
          try {
            readings.add(titleOf(size), name, await read(load, server, { size, seconds, settleMs }))
          } finally {
            await server.stop()
          }
        }
      }
    }
  } finally {
    await load.stop()
  }
  return latencyReport({
    name: 'relay latency',
    facts: `Medians of ${roundsText(rounds)} of ${seconds} s: ${DATA.length} bytes to all subscribers of one channel, ${PER_SECOND} publishes/s, in a new process after ${WARM_UP_SECONDS} s of warm-up.`,
    sections: sizes.map((size) => ({
      title: titleOf(size),
      file: `latency-relay-${size}.svg`,
      columns: ['server CPU'],
      rows: names.map((name) => {
        const of = (pick: (reading: Reading) => number): number => readings.median(titleOf(size), name, pick)
        return {
          name,
          p50: of(({ p50 }) => p50),
          p99: of(({ p99 }) => p99),
          p999: of(({ p999 }) => p999),
          cells: [`${milliseconds(of(({ serverShare }) => serverShare) * 100)} %`]
        }
      })
    }))
  })
}

const titleOf = (size: number): string => `Relay: ${grouped(size)} subscribers, ${PER_SECOND} publishes/s`

const WARM_UP_SECONDS = 1

interface Extent {
  readonly size: number
  readonly seconds: number
  readonly settleMs: number
}

const read = async (load: Load, server: RunningServer, { size, seconds, settleMs }: Extent): Promise<Reading> => {
  await load.run({ ...openOrder(server, size, 1), parseEvery: Math.ceil(size / PARSING) })
  const publish = {
    kind: 'publish',
    ports: server.ports,
    key: KEY,
    data: DATA,
    channels: 1,
    connections: 1,
    perSecond: PER_SECOND
  } as const
  await load.run({ ...publish, seconds: WARM_UP_SECONDS })
  await setTimeout(settleMs)
  const reading = await measure(load, server, { ...publish, seconds }, 'deliveries')
  await closeAll(load)
  return reading
}
