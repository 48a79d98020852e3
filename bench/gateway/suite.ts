import { cpuMicroseconds, residentMebibytes } from '../harness/cpu.js'
import { median, medianDifference, medianRatio } from '../harness/statistics.js'
import type { Block, Capacity, Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { type Goal, goalTable, roundsText, table } from '../harness/table.js'
import { limitCost } from './limit-cost.js'
import { CONNECTIONS, Load } from './load-process.js'
import { relayHopBlock } from './relay-hop.js'
import {
  browserRequest,
  EXPRESS,
  FIFTY_ROWS,
  GATEWAY,
  HTTP_PROXY,
  OPENAPI,
  type RunningServer,
  type ServerName,
  startServers,
  startUpstream,
  WITHOUT_CHAIN
} from './servers.js'

const GET = 'GET'
const POST = 'validated POST, 0.9 KB'
const SCENARIOS = { [GET]: browserRequest('GET'), [POST]: browserRequest('POST') }

const FULL = { rounds: 40, requests: 1500, seconds: 1, warmUpRequests: 12_000 } as const
const QUICK = { rounds: 3, requests: 800, seconds: 0.5, warmUpRequests: 2000 } as const

/** A round of realtime traffic takes several seconds. */
const RELAY_HOP_ROUNDS = 9

const run = async ({ isQuick, ...options }: SuiteOptions): Promise<SuiteResult> => {
  const defaults = isQuick ? QUICK : FULL
  const { rounds = defaults.rounds, requests = defaults.requests, seconds = defaults.seconds } = options
  const readings = await readRequests(rounds, requests, defaults.warmUpRequests)
  const hop = await relayHopBlock({ rounds: isQuick ? 1 : Math.min(rounds, RELAY_HOP_ROUNDS), seconds })
  return { blocks: [gatewayBlock(readings, rounds, requests), hop], capacities: gatewayCapacities(readings) }
}

export const gatewaySuite: Suite = { blocks: ['gateway', 'relay behind the gateway'], run }

class Readings {
  /** CPU microseconds per request of each round. */
  readonly #cpus = new Map<string, number[]>()
  readonly memory = new Map<ServerName, number>()

  add(scenario: string, server: ServerName, cpu: number): void {
    const key = `${scenario} | ${server}`
    this.#cpus.set(key, [...(this.#cpus.get(key) ?? []), cpu])
  }

  cpus(scenario: string, server: ServerName): readonly number[] {
    return this.#cpus.get(`${scenario} | ${server}`) ?? []
  }
}

/**
 * Measures CPU time per request. The servers take many short turns, and readings of the same round are compared, because
 * other programs on the machine disturb them equally.
 */
const readRequests = async (rounds: number, requests: number, warmUpRequests: number): Promise<Readings> => {
  const upstream = await startUpstream()
  const load = new Load()
  const servers = await startServers(upstream.url)
  const readings = new Readings()
  try {
    for (let round = -1; round < rounds; round++) {
      // The first round only warms up.
      const turn = round === -1 ? warmUpRequests : requests
      for (const [scenario, bytes] of Object.entries(SCENARIOS)) {
        for (const [name, server] of servers) {
          const cpu = await measure(load, server, bytes, turn)
          if (round >= 0) readings.add(scenario, name, cpu)
        }
      }
    }
    for (const [name, { process }] of servers) readings.memory.set(name, residentMebibytes(process.pid))
    return readings
  } finally {
    const processes = [...servers.values()].map(({ process }) => process)
    await Promise.all([upstream.process, load, ...processes].map((one) => one.stop()))
  }
}

const measure = async (load: Load, server: RunningServer, bytes: string, requests: number): Promise<number> => {
  const before = cpuMicroseconds(server.process.pid)
  await load.send(server, { bytes, requests })
  return (cpuMicroseconds(server.process.pid) - before) / requests
}

/** Requests per second of a core that does nothing else. */
const gatewayCapacities = (readings: Readings): Capacity[] =>
  [...readings.memory.keys()]
    .filter((server) => server !== OPENAPI && server !== FIFTY_ROWS && server !== WITHOUT_CHAIN)
    .map((server) => ({
      server: server === GATEWAY ? 'Gatehouse' : server,
      requestsPerSecond: 1e6 / median(readings.cpus(GET, server))
    }))

const gatewayBlock = (readings: Readings, rounds: number, requests: number): Block => ({
  name: 'gateway',
  markdown: [
    `Medians of ${roundsText(rounds)} of ${requests} requests over ${CONNECTIONS} connections. The ratios are medians of the ratios of each round.`,
    table(
      ['', 'GET, CPU µs', 'POST of 0.9 KB, CPU µs', 'memory after the run, MiB'],
      [...readings.memory].map(([server, memory]) => [
        server,
        median(readings.cpus(GET, server)).toFixed(0),
        median(readings.cpus(POST, server)).toFixed(0),
        memory.toFixed(0)
      ])
    ),
    goalTable(goals(readings))
  ].join('\n\n')
})

const goals = (readings: Readings): Goal[] => {
  const goal = (scenario: string, server: ServerName, peer: ServerName, atMost: number): Goal[] =>
    readings.memory.has(peer)
      ? [
          {
            what: `${scenario}: ${server}, to ${peer}`,
            measured: medianRatio(readings.cpus(scenario, server), readings.cpus(scenario, peer)),
            atMost,
            unit: ''
          }
        ]
      : []
  return [
    ...goal(GET, GATEWAY, HTTP_PROXY, 1),
    ...goal(GET, GATEWAY, EXPRESS, 0.45),
    ...goal(POST, GATEWAY, HTTP_PROXY, 1.1),
    ...goal(POST, GATEWAY, EXPRESS, 0.45),
    ...goal(GET, OPENAPI, GATEWAY, 1.15),
    ...goal(POST, OPENAPI, GATEWAY, 1.15),
    ...goal(GET, FIFTY_ROWS, GATEWAY, 1.03),
    {
      what: `memory after the run, to ${HTTP_PROXY}`,
      measured: (readings.memory.get(GATEWAY) ?? Number.NaN) / (readings.memory.get(HTTP_PROXY) ?? Number.NaN),
      atMost: 1.05,
      unit: ''
    },
    {
      what: 'the hook chain, per GET',
      measured: medianDifference(readings.cpus(GET, GATEWAY), readings.cpus(GET, WITHOUT_CHAIN)),
      atMost: 50,
      unit: ' µs'
    },
    { what: 'limits by user and address in memory, per request', measured: limitCost(), atMost: 2, unit: ' µs' }
  ]
}
