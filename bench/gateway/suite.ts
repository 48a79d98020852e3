import { createSecretKey } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ZoneCreateSchema } from '../../schemas/zones.js'
import { createAppToken } from '../../src/shared/app-token.js'
import { cpuMicroseconds, residentMebibytes } from '../harness/cpu.js'
import { type BenchProcess, flagsOf, LOAD_CORE, SERVER_CORE, startProcess } from '../harness/process.js'
import { median, medianDifference, medianRatio } from '../harness/statistics.js'
import { type Goal, goalTable, table } from '../harness/table.js'
import { relayHopSuite } from './relay-hop.js'

const API_SECRET = 'a-secret-for-benchmarks-0123456789abcdef'
const CONNECTIONS = 64
const WARM_UP_REQUESTS = 12_000

const GET = 'GET'
const POST = 'validated POST 0.9 KB'

const SERVERS = {
  'gatehouse, whole chain': 'gatehouse',
  'gatehouse, routes of an OpenAPI document': 'gatehouse',
  'gatehouse, no chain': 'without-chain',
  'bare @fastify/http-proxy': 'fastify-http-proxy',
  'node:http + undici dispatch': 'node-undici-dispatch',
  'express + http-proxy-middleware': 'express-http-proxy-middleware'
} as const

const OPENAPI = 'gatehouse, routes of an OpenAPI document'

type ServerName = keyof typeof SERVERS

interface Reading {
  readonly cpu: number
  readonly rate: number
  readonly p50: number
  readonly p99: number
}

export interface SuiteOptions {
  readonly rounds?: number | undefined
  readonly requests?: number | undefined
  /** Duration of each reading of realtime traffic. */
  readonly seconds?: number | undefined
}

/** A round of realtime traffic takes several seconds. */
const RELAY_HOP_ROUNDS = 9

export const gatewaySuite = async ({ rounds = 40, requests = 1500, seconds = 1 }: SuiteOptions): Promise<string> => {
  const requestReport = await requestSuite(rounds, requests)
  const hopReport = await relayHopSuite({ rounds: Math.min(rounds, RELAY_HOP_ROUNDS), seconds })
  return [requestReport, hopReport].join('\n\n')
}

/**
 * Measures CPU time per request. The servers take many short turns, and readings of the same round are compared, because
 * other programs on the machine disturb them equally.
 */
const requestSuite = async (rounds: number, requests: number): Promise<string> => {
  const upstream = startProcess(LOAD_CORE, new URL('./upstream.js', import.meta.url))
  const load = startProcess(LOAD_CORE, new URL('./load.js', import.meta.url))
  const [, backendUrl = ''] = await upstream.line(/upstream at (\S+)/)
  const servers = await startServers(backendUrl)

  try {
    const scenarios = { [GET]: browserRequest('GET'), [POST]: browserRequest('POST') }
    const readings = new Map<string, Reading[]>()
    for (let round = -1; round < rounds; round++) {
      // The first round only warms up.
      const turn = round === -1 ? WARM_UP_REQUESTS : requests
      for (const [scenario, bytes] of Object.entries(scenarios)) {
        for (const [name, server] of servers) {
          const reading = await measure(load, server, bytes, turn)
          if (round >= 0) readings.set(`${scenario} ${name}`, [...(readings.get(`${scenario} ${name}`) ?? []), reading])
        }
      }
    }
    return report(readings, servers, rounds, requests)
  } finally {
    await Promise.all([upstream, load, ...[...servers.values()].map(({ process }) => process)].map((one) => one.stop()))
  }
}

interface RunningServer {
  readonly process: BenchProcess
  readonly port: number
}

const startServers = async (backendUrl: string): Promise<Map<ServerName, RunningServer>> => {
  const servers = new Map<ServerName, RunningServer>()
  // `Object.entries` widens the keys to string.
  for (const [name, file] of Object.entries(SERVERS) as [ServerName, string][]) {
    const env = {
      BACKEND_URL: backendUrl,
      API_SECRET,
      GATEWAY_PORT: '0',
      AUDIT_LOG_FILE: '/dev/null',
      ...(name === OPENAPI && { GATEWAY_ROUTES: openApiFile() })
    }
    const flags = file === 'gatehouse' ? flagsOf('gateway') : []
    const process = startProcess(SERVER_CORE, new URL(`./servers/${file}.js`, import.meta.url), env, flags)
    const [, port] = await process.line(/listening at http:\/\/[^:]+:(\d+)/)
    servers.set(name, { process, port: Number(port) })
  }
  return servers
}

/** The two requests of the benchmark as an OpenAPI document, with the fields of the built-in routes. */
const openApiFile = (): string => {
  const id = { name: 'id', in: 'path', required: true, schema: { type: 'string', minLength: 1 } }
  const expand = { name: 'expand', in: 'query', schema: { type: 'string', maxLength: 100 } }
  const schema = JSON.parse(JSON.stringify(ZoneCreateSchema))
  const paths = {
    '/api/zones/{id}': { get: { parameters: [id, expand] } },
    '/api/zones': { post: { requestBody: { required: true, content: { 'application/json': { schema } } } } }
  }
  const file = join(mkdtempSync(join(tmpdir(), 'gatehouse-bench-')), 'openapi.json')
  writeFileSync(file, JSON.stringify({ openapi: '3.1.0', paths }))
  return file
}

const measure = async (
  load: BenchProcess,
  { process, port }: RunningServer,
  bytes: string,
  requests: number
): Promise<Reading> => {
  const before = cpuMicroseconds(process.pid)
  load.writeLine(JSON.stringify({ port, connections: CONNECTIONS, requests, bytes }))
  const [, json = ''] = await load.line(/^result (.*)$/)
  const { errors, ...rest } = JSON.parse(json)
  if (errors > 0) throw new Error(`${errors} of ${requests} responses were not 200`)
  return { ...rest, cpu: (cpuMicroseconds(process.pid) - before) / requests }
}

/** A request of a signed-in browser. */
const browserRequest = (method: 'GET' | 'POST'): string => {
  const token = createAppToken(
    { userId: 7, email: 'a@example.com', role: 'operator' },
    createSecretKey(API_SECRET, 'utf8'),
    {
      format: 'jwt',
      lifetimeSeconds: 36_000
    }
  )
  const body = method === 'GET' ? '' : JSON.stringify({ name: 'Lobby', note: 'y'.repeat(870) })
  return [
    method === 'GET' ? 'GET /api/zones/17?expand=floor HTTP/1.1' : 'POST /api/zones HTTP/1.1',
    'Host: localhost:3000',
    'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    'Accept: application/json',
    'Accept-Language: en',
    'Sec-Fetch-Site: same-origin',
    'Sec-Fetch-Mode: cors',
    'Sec-Fetch-Dest: empty',
    'Referer: http://localhost:3000/floors/3',
    `Cookie: csrf_token=abcdef; auth_token=${token}; auth_user=%7B%22userId%22%3A7%7D; auth_permissions=%5B%22zones.read%22%5D`,
    ...(method === 'GET'
      ? []
      : [
          'Origin: http://localhost:3000',
          'X-CSRF-Token: abcdef',
          'Content-Type: application/json',
          `Content-Length: ${body.length}`
        ]),
    '',
    body
  ].join('\r\n')
}

const report = (
  readings: ReadonlyMap<string, readonly Reading[]>,
  servers: ReadonlyMap<ServerName, RunningServer>,
  rounds: number,
  requests: number
): string => {
  const cpu = (scenario: string, name: ServerName): readonly number[] =>
    (readings.get(`${scenario} ${name}`) ?? []).map((reading) => reading.cpu)
  const rows = [...readings].map(([name, list]) => [
    name,
    median(list.map((reading) => reading.cpu)).toFixed(0),
    median(list.map((reading) => reading.rate)).toFixed(0),
    median(list.map((reading) => reading.p50)).toFixed(1),
    median(list.map((reading) => reading.p99)).toFixed(1)
  ])
  const memory = [...servers].map(([name, { process }]) => [name, residentMebibytes(process.pid).toFixed(0)])
  const ours = 'gatehouse, whole chain'
  const ratio = (scenario: string, peer: ServerName): number => medianRatio(cpu(scenario, ours), cpu(scenario, peer))
  const rss = (name: ServerName): number => residentMebibytes(servers.get(name)?.process.pid ?? 0)
  const goals: Goal[] = [
    {
      what: 'GET, CPU of bare @fastify/http-proxy',
      measured: ratio(GET, 'bare @fastify/http-proxy'),
      atMost: 0.9,
      unit: ''
    },
    {
      what: 'GET, CPU of express + http-proxy-middleware',
      measured: ratio(GET, 'express + http-proxy-middleware'),
      atMost: 0.45,
      unit: ''
    },
    {
      what: 'POST, CPU of bare @fastify/http-proxy',
      measured: ratio(POST, 'bare @fastify/http-proxy'),
      atMost: 1.05,
      unit: ''
    },
    {
      what: 'POST, CPU of express + http-proxy-middleware',
      measured: ratio(POST, 'express + http-proxy-middleware'),
      atMost: 0.45,
      unit: ''
    },
    {
      what: 'GET of an OpenAPI document, CPU of a built-in route',
      measured: medianRatio(cpu(GET, OPENAPI), cpu(GET, ours)),
      atMost: 1.15,
      unit: ''
    },
    {
      what: 'POST of an OpenAPI document, CPU of a built-in route',
      measured: medianRatio(cpu(POST, OPENAPI), cpu(POST, ours)),
      atMost: 1.15,
      unit: ''
    },
    {
      what: 'memory of bare @fastify/http-proxy',
      measured: rss(ours) / rss('bare @fastify/http-proxy'),
      atMost: 1.1,
      unit: ''
    },
    {
      what: 'the chain, per GET, over the same server without it',
      measured: medianDifference(cpu(GET, ours), cpu(GET, 'gatehouse, no chain')),
      atMost: 50,
      unit: ' µs'
    }
  ]
  return [
    `## Gateway\n\nMedians of ${rounds} rounds of ${requests} requests over ${CONNECTIONS} connections; goals: of each round's ratio.\n`,
    table(['', 'CPU µs/request', 'requests/s', 'p50 ms', 'p99 ms'], rows),
    '',
    table(['after the run', 'memory MiB'], memory),
    '',
    goalTable(goals)
  ].join('\n')
}
