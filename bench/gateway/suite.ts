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
/** Half of the connections wait: requests without a token may use a quarter of the connections to the backend. */
const ANONYMOUS_GET = 'GET without a session'
const POST = 'validated POST, 0.9 KB'
const SCENARIOS = {
  [GET]: browserRequest('GET'),
  [ANONYMOUS_GET]: browserRequest('GET').replace(/Cookie: .*\r\n/, ''),
  [POST]: browserRequest('POST')
}

/** Two processes of the same server differ by up to a quarter, so every server is started several times. */
const FULL = { starts: 6, rounds: 7, requests: 1500, seconds: 1, warmUpRequests: 12_000 } as const
const QUICK = { starts: 1, rounds: 3, requests: 800, seconds: 0.5, warmUpRequests: 2000 } as const

/** A round of realtime traffic takes several seconds. */
const RELAY_HOP_ROUNDS = 9

const run = async ({ isQuick, ...options }: SuiteOptions): Promise<SuiteResult> => {
  const defaults = isQuick ? QUICK : FULL
  const { rounds = defaults.rounds, requests = defaults.requests, seconds = defaults.seconds } = options
  const readings = new Readings()
  for (let start = 0; start < defaults.starts; start++)
    await readRequests(readings, { rounds, requests, warmUpRequests: defaults.warmUpRequests })
  const extent = `${defaults.starts === 1 ? 'one start' : `${defaults.starts} starts`} of each server, with ${roundsText(rounds)} of ${requests} requests over ${CONNECTIONS} connections`
  const hop = await relayHopBlock({
    rounds: isQuick ? 1 : Math.min(options.rounds ?? RELAY_HOP_ROUNDS, RELAY_HOP_ROUNDS),
    seconds
  })
  return { blocks: [gatewayBlock(readings, extent), hop], capacities: gatewayCapacities(readings) }
}

export const gatewaySuite: Suite = { blocks: ['gateway', 'relay behind the gateway'], run }

class Readings {
  /** CPU microseconds per request of each round. */
  readonly #cpus = new Map<string, number[]>()
  /** The medians of GET of each process. */
  readonly #starts = new Map<ServerName, number[]>()
  /** Mebibytes of each process after its last round. */
  readonly #memory = new Map<ServerName, number[]>()

  add(scenario: string, server: ServerName, cpu: number): void {
    const key = `${scenario} | ${server}`
    this.#cpus.set(key, [...(this.#cpus.get(key) ?? []), cpu])
  }

  cpus(scenario: string, server: ServerName): readonly number[] {
    return this.#cpus.get(`${scenario} | ${server}`) ?? []
  }

  /** Called after the last round of a process. */
  endProcess(server: ServerName, rounds: number, mebibytes: number): void {
    this.#starts.set(server, [...(this.#starts.get(server) ?? []), median(this.cpus(GET, server).slice(-rounds))])
    this.#memory.set(server, [...(this.#memory.get(server) ?? []), mebibytes])
  }

  get servers(): readonly ServerName[] {
    return [...this.#memory.keys()]
  }

  memory(server: ServerName): number {
    return median(this.#memory.get(server) ?? [])
  }

  /** The fastest and the slowest process of a server. */
  startRange(server: ServerName): string {
    const medians = this.#starts.get(server) ?? []
    return `${Math.min(...medians).toFixed(0)}–${Math.max(...medians).toFixed(0)}`
  }
}

interface Extent {
  readonly rounds: number
  readonly requests: number
  readonly warmUpRequests: number
}

/**
 * Measures CPU time per request. The servers take many short turns, and readings of the same round are compared, because
 * other programs on the machine disturb them equally.
 */
const readRequests = async (readings: Readings, { rounds, requests, warmUpRequests }: Extent): Promise<void> => {
  const upstream = await startUpstream()
  const load = new Load()
  const servers = await startServers(upstream.url)
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
    for (const [name, { process }] of servers) readings.endProcess(name, rounds, residentMebibytes(process.pid))
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
  readings.servers
    .filter((server) => server !== OPENAPI && server !== FIFTY_ROWS && server !== WITHOUT_CHAIN)
    .map((server) => ({
      server: server === GATEWAY ? 'Gatehouse' : server,
      requestsPerSecond: 1e6 / median(readings.cpus(GET, server))
    }))

const gatewayBlock = (readings: Readings, extent: string): Block => ({
  name: 'gateway',
  markdown: [
    `Medians of ${extent}. The ratios are medians of the ratios of each round.`,
    table(
      [
        '',
        'GET, CPU µs',
        'GET, range of the starts',
        'GET without a session',
        'POST of 0.9 KB',
        'memory after the run, MiB'
      ],
      readings.servers.map((server) => [
        server,
        median(readings.cpus(GET, server)).toFixed(0),
        readings.startRange(server),
        median(readings.cpus(ANONYMOUS_GET, server)).toFixed(0),
        median(readings.cpus(POST, server)).toFixed(0),
        readings.memory(server).toFixed(0)
      ])
    ),
    goalTable(goals(readings))
  ].join('\n\n')
})

const goals = (readings: Readings): Goal[] => {
  const goal = (scenario: string, server: ServerName, peer: ServerName, atMost: number): Goal[] =>
    readings.servers.includes(peer)
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
    ...goal(ANONYMOUS_GET, GATEWAY, HTTP_PROXY, 1),
    ...goal(POST, GATEWAY, HTTP_PROXY, 1.1),
    ...goal(POST, GATEWAY, EXPRESS, 0.45),
    ...goal(GET, OPENAPI, GATEWAY, 1.15),
    ...goal(POST, OPENAPI, GATEWAY, 1.15),
    ...goal(GET, FIFTY_ROWS, GATEWAY, 1.03),
    {
      what: `memory after the run, to ${HTTP_PROXY}`,
      measured: readings.memory(GATEWAY) / readings.memory(HTTP_PROXY),
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
