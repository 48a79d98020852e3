import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { cpuMicroseconds } from '../harness/cpu.js'
import { SERVER_CORE } from '../harness/process.js'
import { median, medianRatio } from '../harness/statistics.js'
import type { Suite, SuiteOptions, SuiteResult } from '../harness/suite.js'
import { goalTable, grouped, roundsText, table } from '../harness/table.js'
import { type RunningServer, SECRET } from './running-server.js'
import { RELAY, startServer } from './servers.js'

/** As in the storm of connects. */
const AT_ONCE = 100
const SETTLE_MS = 300
const USER = 'reader'
const KEY = secretKey(SECRET)

/** Runs the tasks with at most `AT_ONCE` at the same time. */
const inParallel = async <Input, Output>(
  inputs: readonly Input[],
  run: (input: Input) => Promise<Output>
): Promise<Output[]> => {
  const outputs: Output[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < inputs.length; index = next++) {
      const input = inputs[index]
      if (input !== undefined) outputs[index] = await run(input)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return outputs
}

/** A backend in the process of the load generator, so that it does not compete with the relay for a core. */
const startBackend = async (): Promise<Server> => {
  const answers: Readonly<Record<string, string>> = {
    '/connect': JSON.stringify({ result: { user: USER } }),
    '/subscribe': JSON.stringify({ result: {} })
  }
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.end(answers[request.url ?? '']))
  })
  server.keepAliveTimeout = 60_000
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

const configFile = (backend: Server) => {
  // A server that listens on a port has such an address.
  const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`
  return {
    client: {
      connection_limit: 50_000,
      connections_per_address: 50_000,
      connection_rate_limit: 50_000,
      proxy: { connect: { enabled: true, endpoint: `${url}/connect`, timeout: '30s' } }
    },
    channel: {
      proxy: { subscribe: { endpoint: `${url}/subscribe`, timeout: '30s' } },
      namespaces: [
        { name: 'open', allow_subscribe_for_client: true },
        { name: 'asked', subscribe_proxy_enabled: true }
      ]
    }
  }
}

/** Sends a command and waits for its reply. */
const request = async (socket: WebSocket, command: object): Promise<void> => {
  socket.send(JSON.stringify(command))
  const [reply] = await once(socket, 'message')
  if (String(reply).includes('"error"')) throw new Error('a command failed')
}

const connect = async ({ ports: [port] }: RunningServer, command: object): Promise<WebSocket> => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/connection/websocket`)
  await once(socket, 'open')
  await request(socket, { id: 1, connect: command })
  return socket
}

const tokenOf = (claims: object): string => signJwt({ sub: USER, ...claims }, KEY, { lifetimeSeconds: 3600 })

/** CPU microseconds of the relay for each client. */
const measured = async (
  { pids: [pid = 0] }: RunningServer,
  clients: number,
  work: () => Promise<unknown>
): Promise<number> => {
  await setTimeout(SETTLE_MS)
  const before = cpuMicroseconds(pid)
  await work()
  return (cpuMicroseconds(pid) - before) / clients
}

interface Readings {
  readonly connectToken: number[]
  readonly connectProxy: number[]
  readonly subscribeOpen: number[]
  readonly subscribeToken: number[]
  readonly subscribeProxy: number[]
}

/** Connects clients with a token and through the backend; the latter then subscribe to a channel of each kind. */
const readRound = async (server: RunningServer, clients: number, round: number, into: Readings): Promise<void> => {
  const numbers = Array.from({ length: clients }, (_, index) => index)
  // Each client has a token of its own.
  const commands = numbers.map((index) => ({ token: tokenOf({ jti: `${round}-${index}` }) }))
  let sockets: WebSocket[] = []
  const connectAll = (list: readonly object[]) => async (): Promise<void> => {
    sockets = await inParallel(list, (command) => connect(server, command))
  }
  into.connectToken.push(await measured(server, clients, connectAll(commands)))
  for (const socket of sockets) socket.terminate()
  into.connectProxy.push(await measured(server, clients, connectAll(numbers.map(() => ({})))))

  const subscribeAll = (list: readonly object[]) => (): Promise<unknown> =>
    inParallel(
      sockets.map((socket, index) => ({ socket, subscribe: list[index] })),
      ({ socket, subscribe }) => request(socket, { id: 2, subscribe })
    )
  // The channels differ, as those that a backend protects usually do.
  const channels = (name: string): { channel: string }[] =>
    numbers.map((index) => ({ channel: `${name}${round}-${index}` }))
  const withToken = channels('open:token').map(({ channel }) => ({ channel, token: tokenOf({ channel }) }))
  into.subscribeOpen.push(await measured(server, clients, subscribeAll(channels('open:plain'))))
  into.subscribeToken.push(await measured(server, clients, subscribeAll(withToken)))
  into.subscribeProxy.push(await measured(server, clients, subscribeAll(channels('asked:'))))
  for (const socket of sockets) socket.terminate()
}

const run = async ({ isQuick, ...options }: SuiteOptions): Promise<SuiteResult> => {
  const { rounds = isQuick ? 1 : 9, connections: clients = isQuick ? 300 : 2000 } = options
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-proxies-'))
  const config = join(folder, 'relay.json')
  const backend = await startBackend()
  writeFileSync(config, JSON.stringify(configFile(backend)))
  const server = await startServer(RELAY, SERVER_CORE, { RELAY_CONFIG: config })
  const readings: Readings = {
    connectToken: [],
    connectProxy: [],
    subscribeOpen: [],
    subscribeToken: [],
    subscribeProxy: []
  }
  const warmUp = { connectToken: [], connectProxy: [], subscribeOpen: [], subscribeToken: [], subscribeProxy: [] }
  try {
    if (!isQuick) await readRound(server, clients, -1, warmUp)
    for (let round = 0; round < rounds; round++) await readRound(server, clients, round, readings)
  } finally {
    await server.stop()
    backend.closeAllConnections()
    backend.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { blocks: [{ name: 'proxies', markdown: report(readings, rounds, clients) }] }
}

const report = (readings: Readings, rounds: number, clients: number): string => {
  const { connectToken, connectProxy, subscribeOpen, subscribeToken, subscribeProxy } = readings
  const row = (title: string, list: readonly number[]): string[] => [title, median(list).toFixed(0)]
  return [
    `Medians of ${roundsText(rounds)} with ${grouped(clients)} clients, ${AT_ONCE} at the same time.`,
    table(
      ['', 'CPU µs/client'],
      [
        row('open a WebSocket and connect with a token', connectToken),
        row('open a WebSocket and connect through the backend', connectProxy),
        row('subscribe where the namespace permits it', subscribeOpen),
        row('subscribe with a token', subscribeToken),
        row('subscribe through the backend', subscribeProxy)
      ]
    ),
    goalTable([
      {
        what: 'connect: through the backend, to a token',
        measured: medianRatio(connectProxy, connectToken),
        atMost: 1.8,
        unit: ''
      },
      {
        what: 'subscribe: through the backend, to a token',
        measured: medianRatio(subscribeProxy, subscribeToken),
        atMost: 1.6,
        unit: ''
      }
    ])
  ].join('\n\n')
}

/** The cost of event proxies in the relay. */
export const proxiesSuite: Suite = { blocks: ['proxies'], run }
