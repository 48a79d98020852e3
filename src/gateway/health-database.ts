import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Client, type Connection } from 'pg'
import { monotonicMs } from '../shared/monotonic.js'
import { type HealthState, keptCheck } from './health.js'

export type DatabaseFault = 'refused' | 'timeout' | 'authentication' | 'unknown database' | 'unreachable' | 'error'
export type DatabaseState = HealthState<DatabaseFault>

export interface DatabaseHealthOptions {
  /** For connecting and asking together. */
  readonly timeoutMs?: number
  readonly now?: () => number
}

const TIMEOUT_MS = 2_000

/**
 * Whether the database answers. Nothing else in the gateway may open one, and this asks it for nothing but a sign of life.
 *
 * Every check makes a connection of its own and ends it. A connection that is kept would prove only that it is still
 * there, not that the database takes new ones with these credentials; and it would have to be watched while it is idle.
 * At one check a second the price is a few milliseconds.
 */
export class DatabaseHealth {
  /** Never throws. Those who ask at the same time, or within a second, get the same answer. */
  readonly check: () => Promise<DatabaseState>
  readonly #url: string
  readonly #timeoutMs: number
  #socket: Socket | null = null
  #closed = false

  constructor(url: string, { timeoutMs = TIMEOUT_MS, now = monotonicMs }: DatabaseHealthOptions = {}) {
    this.#url = url
    this.#timeoutMs = timeoutMs
    this.check = keptCheck({ ask: () => this.#ask(), reasonOf, now })
  }

  /** Ends the check that may be under way. From then on no connection is made. */
  async close(): Promise<void> {
    this.#closed = true
    this.#socket?.destroy()
    // The one under way, or one that fails at once.
    await this.check()
  }

  async #ask(): Promise<void> {
    if (this.#closed) throw new Error('closed')
    // The driver's own limits are one for connecting and another for the query. The socket obeys a single one for both,
    // at any moment of a handshake.
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
      const { connection } = client as unknown as WithConnection
      connection.once('sslconnect', () => breakOnThrow(connection.stream))
      // What no call is waiting for, such as a connection that dies between two of them, would end the process otherwise.
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

/** What a client has and its types leave out. The stream is another one from the moment that TLS begins. */
interface WithConnection {
  readonly connection: Connection
}

/**
 * The driver throws at messages that it cannot read, the request for a Kerberos ticket among them. It does so in the
 * middle of an event, where nothing could catch it and the process would end; here the connection does.
 */
const breakOnThrow = (stream: Duplex): void => {
  const { emit } = stream
  stream.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    try {
      return emit.call(stream, event, ...args)
    } catch (error) {
      stream.destroy(error as Error)
      return true
    }
  }
}

class DeadlinePassed extends Error {
  readonly code = 'ETIMEDOUT'
}

// The system's codes and PostgreSQL's.
const FAULTS: Readonly<Record<string, DatabaseFault>> = {
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

const reasonOf = (error: unknown): DatabaseFault => {
  const { code = '', syscall, message } = error as NodeJS.ErrnoException
  // The socket file of a database on this machine. Other files, such as certificates, may be missing too.
  if (code === 'ENOENT' && syscall === 'connect') return 'unreachable'
  // What the driver itself objects to in a login, such as a password that is asked for and not given, has no code.
  return FAULTS[code] ?? (message.startsWith('SASL') ? 'authentication' : 'error')
}
