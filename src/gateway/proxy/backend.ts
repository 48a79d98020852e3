import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { buildConnector, Client } from 'undici'
import { READING_METHODS } from '../access.js'
import type { GatewayConfig } from '../config.js'
import { GatewayError } from '../errors.js'

/** Somebody who wants a connection to the backend. */
export interface Waiter {
  /** Holds a connection for as long as its sender likes to take: the body is passed on as it comes. */
  readonly streams: boolean
  /** Made for a request without a verified token: anybody can send any number of these. */
  readonly anonymous: boolean
  /** Its turn. From now on the connection is its own, until it calls `leave`. */
  run(connection: Client, waitedMs: number): void
  /** Its turn did not come in time, or there are too many who wait already. */
  reject(error: GatewayError): void
}

export interface SlotLimits {
  readonly connections: number
  /** With those that wait. */
  readonly inFlight: number
  /** The share of all three that anonymous requests may have: connections, streams, and all that are in flight. */
  readonly anonymousPercent: number
  /** How long anybody waits. */
  readonly waitMs: number
}

interface Waiting {
  readonly since: number
  readonly deadline: NodeJS.Timeout
}

/**
 * The backend's connections: who uses which, and who waits for one. Undici's own pool has a queue too, but one without end,
 * without a deadline, and that nobody can leave; and it looks through all its connections for a free one, twice for each
 * request.
 */
export class BackendSlots {
  readonly #limits: SlotLimits
  /** What all requests together may have. Streams get half of the connections: senders that never finish must leave some. */
  readonly #all: Shares
  readonly #anonymous: Shares
  readonly #waiting = new Map<Waiter, Waiting>()
  readonly #open: () => Client
  readonly #clients: Client[] = []
  /** The last that was used comes first: so few stay open as are needed. */
  readonly #idle: Client[] = []
  /** Whether those who wait are about to be served; who comes now is not served before them. */
  #handsOver = false

  /** `open` makes one that connects, and connects again, when it is used. */
  constructor(limits: SlotLimits, open: () => Client) {
    this.#limits = limits
    this.#open = open
    this.#all = sharesOf(limits, 100)
    this.#anonymous = sharesOf(limits, limits.anonymousPercent)
  }

  get inFlight(): number {
    return this.#all.inFlight.used
  }

  /** Runs it, at once or when its turn comes, or refuses it. */
  enter(waiter: Waiter): void {
    if (!this.#isLeft(waiter, 'inFlight')) {
      waiter.reject(overloaded())
      return
    }
    this.#count(waiter, 'inFlight', 1)
    if (!this.#handsOver && this.#canRun(waiter)) waiter.run(this.#take(waiter), 0)
    else this.#wait(waiter)
  }

  /** For one that still waits. */
  giveUp(waiter: Waiter): void {
    if (this.#stopWaiting(waiter)) this.#count(waiter, 'inFlight', -1)
  }

  /** For one that has run. */
  leave(waiter: Waiter, connection: Client): void {
    this.#count(waiter, 'inFlight', -1)
    this.#count(waiter, 'connections', -1)
    if (waiter.streams) this.#count(waiter, 'streams', -1)
    this.#idle.push(connection)
    if (this.#waiting.size === 0 || this.#handsOver) return
    // Not at once: the connection is in the middle of saying how a request ended, and must not be given the next one before
    // it has done with that. Undici ends the program otherwise.
    this.#handsOver = true
    process.nextTick(() => this.#handOver())
  }

  /** Ends all connections, and what is on them. */
  async destroy(): Promise<void> {
    // Those whose browsers were just cut off are told so in this very turn, and leave by themselves.
    await delay(1)
    await Promise.all(this.#clients.map((connection) => connection.destroy()))
  }

  #canRun(waiter: Waiter): boolean {
    return this.#isLeft(waiter, 'connections') && (!waiter.streams || this.#isLeft(waiter, 'streams'))
  }

  #isLeft({ anonymous }: Waiter, what: keyof Shares): boolean {
    return isFree(this.#all[what]) && (!anonymous || isFree(this.#anonymous[what]))
  }

  #count({ anonymous }: Waiter, what: keyof Shares, change: 1 | -1): void {
    this.#all[what].used += change
    if (anonymous) this.#anonymous[what].used += change
  }

  #handOver(): void {
    this.#handsOver = false
    for (const [waiter, { since }] of this.#waiting) {
      if (!isFree(this.#all.connections)) return
      if (!this.#canRun(waiter)) continue
      this.#stopWaiting(waiter)
      waiter.run(this.#take(waiter), performance.now() - since)
    }
  }

  #take(waiter: Waiter): Client {
    this.#count(waiter, 'connections', 1)
    if (waiter.streams) this.#count(waiter, 'streams', 1)
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const opened = this.#open()
    this.#clients.push(opened)
    return opened
  }

  #wait(waiter: Waiter): void {
    const deadline = setTimeout(() => {
      this.giveUp(waiter)
      // With a connection left it is the share of the anonymous that is used up, which is no fault of the backend.
      waiter.reject(waiter.anonymous && isFree(this.#all.connections) ? overloaded() : noConnection())
    }, this.#limits.waitMs)
    this.#waiting.set(waiter, { since: performance.now(), deadline })
  }

  #stopWaiting(waiter: Waiter): boolean {
    clearTimeout(this.#waiting.get(waiter)?.deadline)
    return this.#waiting.delete(waiter)
  }
}

interface Share {
  readonly max: number
  used: number
}

interface Shares {
  readonly connections: Share
  readonly streams: Share
  /** With those that wait. */
  readonly inFlight: Share
}

const isFree = ({ used, max }: Share): boolean => used < max

/** At least one of each, or nobody could ever be served. */
const sharesOf = ({ connections, inFlight }: SlotLimits, percent: number): Shares => {
  const share = (whole: number): Share => ({ max: Math.max(1, Math.floor((whole * percent) / 100)), used: 0 })
  return { connections: share(connections), streams: share(Math.floor(connections / 2)), inFlight: share(inFlight) }
}

const noConnection = (): GatewayError =>
  new GatewayError('BACKEND_TIMEOUT', { cause: new Error('no connection to the backend became free') })

const overloaded = (): GatewayError => new GatewayError('OVERLOADED', { headers: { 'retry-after': '1' } })

const CONNECT_TIMEOUT_MS = 2_000

// Shorter than servers commonly keep an idle connection: the side that closes first must be ours, or a request meets a
// connection that is just being closed.
const IDLE_MS = 4_000

const MAX_HEADER_BYTES = 64 * 1024

/** The backend as everything that is forwarded sees it: one pool of connections, one place to be careful in. */
export interface Backend {
  /** Whose turn it is to use which connection. */
  readonly slots: BackendSlots
  readonly timeoutMs: number
  /** How long a `text/event-stream` response may be silent. */
  readonly streamIdleMs: number
  /** How much of a response is kept for a slow reader. */
  readonly responseBufferBytes: number
  readonly origin: string
  /** What stands in front of the gateway's path there; empty for most. */
  readonly pathPrefix: string
  /** Both in one. */
  readonly address: string
}

/** Told how the backend does. */
export interface BackendWatch {
  answered(request: FastifyRequest, seconds: number): void
  failed(error: unknown): void
}

export const openBackend = (config: GatewayConfig['backend']): Backend => {
  const { url, timeoutMs, streamIdleMs, connections, inFlight, anonymousPercent, responseBufferBytes } = config
  const { origin, pathname } = new URL(url)
  const options: Client.Options = {
    // One request at a time per connection: a slow answer must hold up no other.
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    connect: connectorOf(Math.min(CONNECT_TIMEOUT_MS, timeoutMs))
  }
  const slots = new BackendSlots(
    { connections, inFlight, anonymousPercent, waitMs: timeoutMs },
    () => new Client(origin, options)
  )
  const pathPrefix = pathname.replace(/\/+$/, '')
  return { slots, timeoutMs, streamIdleMs, responseBufferBytes, origin, pathPrefix, address: `${origin}${pathPrefix}` }
}

const connectorOf = (timeout: number): buildConnector.connector => {
  // Verifying is the default of TLS and stays so, whatever a proxy library passes by itself.
  const connect = buildConnector({ timeout, rejectUnauthorized: true })
  return (options, callback) =>
    connect(options, (error, socket) => {
      if (error !== null) {
        callback(ofNoKind(error), null)
        return
      }
      // Undici says what a connection has served only where it was closed, not where it was reset.
      socket.once('error', (fault) => Object.assign(fault, { socket: { bytesRead: socket.bytesRead } }))
      joinSmallWrites(socket)
      callback(null, socket)
    })
}

const SMALL_BYTES = 16 * 1024

/**
 * Lets the head and the body of a small request leave in one piece, as Latin-1 text, which keeps every byte. A list of
 * pieces is dearer to write than their copy, by 1 to 3 µs.
 */
const joinSmallWrites = (socket: Socket): void => {
  const { _writev: writeList } = socket
  socket._writev = (chunks, callback) => {
    const text = joined(chunks)
    if (text !== null) socket._write(text, 'latin1', callback)
    else writeList?.call(socket, chunks, callback)
  }
}

const joined = (chunks: readonly { chunk: Buffer | string; encoding: BufferEncoding }[]): string | null => {
  let text = ''
  for (const { chunk, encoding } of chunks) {
    if (typeof chunk !== 'string') text += chunk.toString('latin1', 0, SMALL_BYTES + 1)
    else if (encoding === 'latin1') text += chunk
    else return null
    if (text.length > SMALL_BYTES) return null
  }
  return text
}

/**
 * Undici has a way of its own for a certificate with another name, after which its client believes for ever that a request
 * is under way, and takes no other.
 */
const ofNoKind = (error: NodeJS.ErrnoException): Error =>
  error.code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? new Error(error.message, { cause: error }) : error

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT'
])

/** What went wrong on the way to the backend, as the error that the browser gets. */
export const toBackendError = (error: unknown): GatewayError => {
  if (error instanceof GatewayError) return error
  const code = codeOf(error)
  return new GatewayError(TIMEOUT_CODES.has(code) ? 'BACKEND_TIMEOUT' : 'BACKEND_UNREACHABLE', { cause: error })
}

const CLOSED_CODES: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/**
 * Whether a request that nothing came back for met a kept connection that the backend was just closing: it never saw the
 * request, so a read may be sent again, once. A mutation never is: nobody can know for certain how far it came.
 */
export const mayRepeat = (method: string, error: unknown): boolean =>
  READING_METHODS.has(method) && CLOSED_CODES.has(codeOf(error)) && hadServedBefore(error)

/** A connection that has answered before; one that was closed at once would only be closed again. */
const hadServedBefore = (error: unknown): boolean =>
  ((error as { socket?: { bytesRead?: number } | null } | null)?.socket?.bytesRead ?? 0) > 0

const codeOf = (error: unknown): string => (error as { code?: string } | null)?.code ?? ''
