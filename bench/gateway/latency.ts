import { cpuMicroseconds } from '../harness/cpu.js'
import { type LatencyReport, latencyReport } from '../harness/latency-report.js'
import { type Latency, median } from '../harness/statistics.js'
import type { SuiteOptions } from '../harness/suite.js'
import { grouped, roundsText } from '../harness/table.js'
import { CONNECTIONS, Load } from './load-process.js'
import {
  browserRequest,
  EXPRESS,
  GATEWAY,
  HTTP_PROXY,
  type RunningServer,
  type ServerName,
  startServers,
  startUpstream,
  UNDICI_DISPATCH
} from './servers.js'

const NAMES: ServerName[] = [GATEWAY, HTTP_PROXY, UNDICI_DISPATCH, EXPRESS]

const FULL = { rounds: 5, seconds: 5, warmUpRequests: 12_000, capacityRequests: 10_000 } as const
const QUICK = { rounds: 1, seconds: 1, warmUpRequests: 2000, capacityRequests: 1500 } as const

interface Reading extends Latency {
  /** CPU utilisation of the server, from 0 to 1. */
  readonly share: number
}

/** Latency of GET requests that arrive at a fixed rate: half of the requests that the gateway can respond to. */
export const gatewayLatency = async ({ isQuick, ...options }: SuiteOptions): Promise<LatencyReport> => {
  const { warmUpRequests, capacityRequests, ...defaults } = isQuick ? QUICK : FULL
  const { rounds = defaults.rounds, seconds = defaults.seconds } = options
  const upstream = await startUpstream()
  const load = new Load()
  const servers = await startServers(upstream.url, NAMES)
  const readings = new Map<ServerName, Reading[]>([...servers.keys()].map((name) => [name, []]))
  try {
    for (const server of servers.values()) await load.send(server, { bytes: GET, requests: warmUpRequests })
    const capacity = await capacityOf(load, servers, capacityRequests)
    const perSecond = Math.round(capacity / 2)
    for (let round = 0; round < rounds; round++) {
      for (const [name, server] of servers) readings.get(name)?.push(await readAtRate(load, server, perSecond, seconds))
    }
    const title = `Gateway: ${grouped(perSecond)} GET requests/s`
    return latencyReport({
      name: 'gateway latency',
      facts: `Medians of ${roundsText(rounds)} of ${seconds} s. The rate is half of the ${grouped(capacity)} requests/s that Gatehouse responds to with ${CONNECTIONS} connections; all servers receive the same rate. Each latency counts from the intended time of the request.`,
      sections: [
        {
          title,
          file: 'latency-gateway.svg',
          columns: ['server CPU'],
          rows: [...readings].map(([name, list]) => {
            const of = (pick: (reading: Reading) => number): number => median(list.map(pick))
            return {
              name,
              p50: of(({ p50 }) => p50),
              p99: of(({ p99 }) => p99),
              p999: of(({ p999 }) => p999),
              cells: [`${(of(({ share }) => share) * 100).toFixed(0)} %`]
            }
          })
        }
      ]
    })
  } finally {
    const processes = [...servers.values()].map(({ process }) => process)
    await Promise.all([upstream.process, load, ...processes].map((one) => one.stop()))
  }
}

const GET = browserRequest('GET')

/** Requests per second of the gateway when each connection sends the next request after a response. */
const capacityOf = async (
  load: Load,
  servers: ReadonlyMap<ServerName, RunningServer>,
  requests: number
): Promise<number> => {
  const gateway = servers.get(GATEWAY)
  if (gateway === undefined) throw new Error('the gateway is not running')
  const { rate } = await load.send(gateway, { bytes: GET, requests })
  return rate
}

const readAtRate = async (load: Load, server: RunningServer, perSecond: number, seconds: number): Promise<Reading> => {
  const before = cpuMicroseconds(server.process.pid)
  const requests = Math.round(perSecond * seconds)
  const { p50, p99, p999, rate } = await load.send(server, { bytes: GET, requests, perSecond })
  const cpuSeconds = (cpuMicroseconds(server.process.pid) - before) / 1e6
  return { p50, p99, p999, share: (cpuSeconds * rate) / requests }
}
