import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flagsOf, SERVER_CORE, startProcess } from '../harness/process.js'
import type { DialectName } from './dialect.js'

export const SECRET = '0123456789abcdef'.repeat(4)
export const KEY = 'fedcba9876543210'.repeat(4)

export const RELAY = 'relay'
export const RELAY_PROTOBUF = 'relay, protobuf'
export const SEND_LOOP = 'ws.send loop'
export const COALESCING = 'ws, coalescing, no features'
export const NET_LOOP = 'plain net writes'
export const SOCKET_IO = 'socket.io'

const ENTRIES = {
  [RELAY]: ['../../src/relay/main.js', 'centrifugo'],
  [RELAY_PROTOBUF]: ['../../src/relay/main.js', 'centrifugoProtobuf'],
  [SEND_LOOP]: ['../peers/ws-send-loop.js', 'centrifugo'],
  [COALESCING]: ['../peers/ws-coalescing.js', 'centrifugo'],
  [NET_LOOP]: ['../peers/net-loop.js', 'centrifugo'],
  [SOCKET_IO]: ['../peers/socket-io.js', 'socketIo']
} as const satisfies Record<string, readonly [entry: string, dialect: DialectName]>

export type ServerName = keyof typeof ENTRIES
// `Object.keys` widens the keys to string.
export const SERVER_NAMES = Object.keys(ENTRIES) as ServerName[]

// All features that cost CPU time, except conflation, because the benchmark counts deliveries.
const RELAY_CONFIG = {
  client: {
    connection_limit: 50_000,
    connections_per_address: 50_000,
    user_connection_limit: 100,
    connection_rate_limit: 50_000,
    commands_per_second: 256
  },
  channel: {
    namespaces: [
      {
        name: 'floor',
        allow_subscribe_for_client: true,
        history_size: 100,
        history_ttl: '60s',
        force_recovery: true,
        force_positioning: true
      }
    ]
  }
}

export interface RunningServer {
  readonly pids: readonly number[]
  /** Clients and publications are distributed over these ports. */
  readonly ports: readonly number[]
  readonly dialect: DialectName
  stop(): Promise<void>
}

export const startServer = async (
  name: ServerName,
  core: string = SERVER_CORE,
  env: Readonly<Record<string, string>> = {}
): Promise<RunningServer> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-relay-'))
  const config = join(folder, 'relay.json')
  writeFileSync(config, JSON.stringify(RELAY_CONFIG))
  const [entry, dialect] = ENTRIES[name]
  const settings = {
    REALTIME_HMAC_SECRET: SECRET,
    REALTIME_API_KEY: KEY,
    RELAY_PORT: '0',
    RELAY_CONFIG: config,
    ...env
  }
  const flags = name === RELAY || name === RELAY_PROTOBUF ? flagsOf('relay') : []
  const process = startProcess(core, new URL(entry, import.meta.url), settings, flags)
  const [, port] = await process.line(/listening at http:\/\/[^:]+:(\d+)/)
  return {
    pids: [process.pid],
    ports: [Number(port)],
    dialect,
    async stop() {
      await process.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** Independent servers, each with a part of the clients. */
export const sideBySide = (servers: readonly [RunningServer, ...RunningServer[]]): RunningServer => ({
  pids: servers.flatMap(({ pids }) => pids),
  ports: servers.flatMap(({ ports }) => ports),
  dialect: servers[0].dialect,
  async stop() {
    await Promise.all(servers.map((server) => server.stop()))
  }
})
