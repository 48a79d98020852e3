import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageVersion } from '../harness/peer-packages.js'
import { flagsOf, SERVER_CORE, startProcess } from '../harness/process.js'
import { centrifugoProgram } from '../harness/programs.js'
import { startCentrifugo } from './centrifugo.js'
import type { DialectName } from './dialect.js'
import { KEY, RELAY_NAMESPACE, type RunningServer, SECRET } from './running-server.js'

export const RELAY = 'relay'
export const RELAY_PROTOBUF = 'relay, protobuf'
export const CENTRIFUGO = 'Centrifugo'
export const SEND_LOOP = '`ws.send` loop'
export const COALESCING = 'coalescing `ws`, no features'
const NET_LOOP = 'plain `net` writes'
const SOCKET_IO = 'socket.io'

const SCRIPTS = {
  [RELAY]: ['../../src/relay/main.js', 'centrifugo'],
  [RELAY_PROTOBUF]: ['../../src/relay/main.js', 'centrifugoProtobuf'],
  [SEND_LOOP]: ['../peers/ws-send-loop.js', 'centrifugo'],
  [COALESCING]: ['../peers/ws-coalescing.js', 'centrifugo'],
  [NET_LOOP]: ['../peers/net-loop.js', 'centrifugo'],
  [SOCKET_IO]: ['../peers/socket-io.js', 'socketIo']
} as const satisfies Record<string, readonly [entry: string, dialect: DialectName]>

export type ServerName = keyof typeof SCRIPTS | typeof CENTRIFUGO

const NAMES = [RELAY, RELAY_PROTOBUF, CENTRIFUGO, SEND_LOOP, COALESCING, NET_LOOP, SOCKET_IO] as const

/** The relay and the installed peers. */
export const installedServers = (): ServerName[] =>
  NAMES.filter((name) => {
    if (name === CENTRIFUGO) return centrifugoProgram() !== undefined
    return name !== SOCKET_IO || packageVersion('socket.io') !== undefined
  })

const RELAY_CONFIG = {
  client: {
    connection_limit: 50_000,
    connections_per_address: 50_000,
    user_connection_limit: 100,
    connection_rate_limit: 50_000,
    commands_per_second: 256
  },
  channel: { namespaces: [RELAY_NAMESPACE] }
}

/** Starts a new process; `env` has settings of the relay. */
export const startServer = async (
  name: ServerName,
  core: string = SERVER_CORE,
  env: Readonly<Record<string, string>> = {}
): Promise<RunningServer> => {
  if (name === CENTRIFUGO) return startCentrifugo(core)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-relay-'))
  const config = join(folder, 'relay.json')
  writeFileSync(config, JSON.stringify(RELAY_CONFIG))
  const [entry, dialect] = SCRIPTS[name]
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
