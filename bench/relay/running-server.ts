import type { DialectName } from './dialect.js'

export const SECRET = '0123456789abcdef'.repeat(4)
export const KEY = 'fedcba9876543210'.repeat(4)

/** The namespace of the channels in every server that has namespaces. */
export const NAMESPACE = {
  name: 'floor',
  allow_subscribe_for_client: true,
  history_size: 100,
  history_ttl: '60s',
  force_recovery: true,
  force_positioning: true
} as const

/** The relay's built-in namespace `floor`, which users run. */
export const RELAY_NAMESPACE = {
  ...NAMESPACE,
  conflate: 'data[].transmitterId',
  entry_time: 'timestamp',
  snapshot: true
} as const

/** A server under test. */
export interface RunningServer {
  readonly pids: readonly number[]
  /** Clients and publications are distributed over these ports. */
  readonly ports: readonly number[]
  readonly dialect: DialectName
  stop(): Promise<void>
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
