import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Client, type Connection } from 'pg'
import { monotonicMs } from '../shared/monotonic.js'
import { cachedCheck, type HealthState } from './health.js'

export type DatabaseFailure = 'refused' | 'timeout' | 'authentication' | 'unknown database' | 'unreachable' | 'error'
export type DatabaseState = HealthState<DatabaseFailure>

export interface DatabaseHealthOptions {
  /** For connecting and the query together. */
  readonly timeoutMs?: number
  readonly now?: () => number
}

const TIMEOUT_MS = 2_000

/**
 * Checks whether the database responds to `SELECT 1`. Nothing else in the gateway connects to a database.
 *
 * Each check opens a connection and closes it. A kept connection would not prove that the database accepts new
 * connections with these credentials. At one check per second this costs a few milliseconds.
 */
export class DatabaseHealth {
  /** Never rejects. Calls within a second share one result. */
  readonly check: () => Promise<DatabaseState>
  readonly #url: string
  readonly #timeoutMs: number
  #socket: Socket | null = null
  #closed = false

  constructor(url: string, { timeoutMs = TIMEOUT_MS, now = monotonicMs }: DatabaseHealthOptions = {}) {
    this.#url = url
    this.#timeoutMs = timeoutMs
    this.check = cachedCheck({ probe: () => this.#probe(), reasonOf, now })
  }

  /** Aborts a running check. Later checks fail without connecting. */
  async close(): Promise<void> {
    this.#closed = true
    this.#socket?.destroy()
    // Waits for the running check, or for one that fails at once.
    await this.check()
  }

  async #probe(): Promise<void> {
    if (this.#closed) throw new Error('closed')
    // The driver has separate timeouts for connecting and for the query. Destroying the socket enforces one for both.
    const socket = new Socket()
    const deadline = setTimeout(() => socket.destroy(new DeadlinePassed()), this.#timeoutMs)
    this.#socket = socket
    try {
      const client = new Client({
        connectionString: this.#url,
        fallback_application_name: 'gatehouse',
        stream: () => socket
      })
      breakOnThrow(socket)
      // See `WithConnection`.
      const { connection } = client as unknown as WithConnection
      connection.once('sslconnect', () => breakOnThrow(connection.stream))
      // An error between two calls would be uncaught otherwise.
      client.on('error', (error) => socket.destroy(error))
      await client.connect()
      await client.query('SELECT 1')
      await client.end()
    } finally {
      clearTimeout(deadline)
      socket.destroy()
      this.#socket = null
    }
  }
}

/** A property that the types of pg do not declare. Its stream is replaced when TLS starts. */
interface WithConnection {
  readonly connection: Connection
}

/**
 * pg throws inside a 'data' listener for messages that it does not support, such as a request for Kerberos
 * authentication. Such an error cannot be caught elsewhere and would end the process. pg has no option for it.
 */
const breakOnThrow = (stream: Duplex): void => {
  const { emit } = stream
  stream.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    try {
      return emit.call(stream, event, ...args)
    } catch (error) {
      // pg throws only errors.
      stream.destroy(error as Error)
      return true
    }
  }
}

class DeadlinePassed extends Error {
  readonly code = 'ETIMEDOUT'
}

// Error codes of the operating system and of PostgreSQL.
const REASONS: Readonly<Record<string, DatabaseFailure>> = {
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'unreachable',
  EAI_AGAIN: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  EHOSTDOWN: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  '28000': 'authentication',
  '28P01': 'authentication',
  '3D000': 'unknown database'
}

const reasonOf = (error: unknown): DatabaseFailure => {
  // Errors of the socket or of pg; `code` is optional.
  const { code = '', syscall, message } = error as NodeJS.ErrnoException
  // A missing Unix socket. Other files, such as certificates, may be missing too.
  if (code === 'ENOENT' && syscall === 'connect') return 'unreachable'
  // Errors of the driver during authentication, such as a missing password, have no code.
  return REASONS[code] ?? (message.startsWith('SASL') ? 'authentication' : 'error')
}
