import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { WebSocket } from 'ws'
import { GatewayError } from '../errors.js'
import { addressGroup } from '../http/client-request.js'

export interface RelayConnectionLimits {
  readonly connections: number
  readonly connectionsPerAddress: number
  /** A connection that is silent for so long is closed. A WebSocket is pinged before. */
  readonly idleMs: number
}

/** Unsent bytes for one side above which the gateway stops reading from the other. */
const MAX_UNSENT_BYTES = 256 * 1024

const CHECKS_PER_IDLE_TIME = 3

/** The relay's own code for a shutdown: clients reconnect. */
const SHUTDOWN = [3001, 'shutdown'] as const

/** The connections of browsers to the relay through this gateway, over all transports. */
export class RelayConnections {
  readonly #limits: RelayConnectionLimits
  readonly #log: Logger
  readonly #open = new Set<FastifyReply>()
  readonly #byAddress = new Map<string, number>()
  readonly #webSockets = new Set<WebSocketPair>()
  readonly #timer: NodeJS.Timeout
  #isClosing = false

  constructor(limits: RelayConnectionLimits, log: Logger) {
    this.#limits = limits
    this.#log = log
    this.#timer = setInterval(() => this.#closeIdle(), limits.idleMs / CHECKS_PER_IDLE_TIME)
    this.#timer.unref()
  }

  get size(): number {
    return this.#open.size
  }

  /** Counts a connection until the returned function is called. Throws if a limit is reached. */
  admit(reply: FastifyReply): () => void {
    const address = addressGroup(reply.request.clientAddress)
    const fromAddress = this.#byAddress.get(address) ?? 0
    const { connections, connectionsPerAddress } = this.#limits
    if (this.#isClosing || this.#open.size >= connections || fromAddress >= connectionsPerAddress) {
      throw new GatewayError('OVERLOADED', { headers: { 'retry-after': '1', connection: 'close' } })
    }
    this.#open.add(reply)
    this.#byAddress.set(address, fromAddress + 1)
    return () => this.#release(reply, address)
  }

  /** Pings both sides of a WebSocket while it is silent, and closes it if a side does not respond. */
  watch(browser: WebSocket, relay: WebSocket): void {
    const pair = [new Peer(browser, 'browser'), new Peer(relay, 'relay')] as const
    this.#webSockets.add(pair)
    const remove = (): void => {
      if (pair.every(({ socket }) => socket.readyState === WebSocket.CLOSED)) this.#webSockets.delete(pair)
    }
    for (const { socket } of pair) socket.once('close', remove)
    remove()
    if (this.#isClosing) browser.close(...SHUTDOWN)
  }

  /** For shutdown: closes all WebSockets and streams. Clients reconnect to another gateway. */
  close(): void {
    this.#isClosing = true
    clearInterval(this.#timer)
    for (const [browser] of this.#webSockets) browser.socket.close(...SHUTDOWN)
    for (const { raw } of this.#open) if (raw.headersSent) raw.destroy()
  }

  #release(reply: FastifyReply, address: string): void {
    this.#open.delete(reply)
    const fromAddress = (this.#byAddress.get(address) ?? 1) - 1
    if (fromAddress > 0) this.#byAddress.set(address, fromAddress)
    else this.#byAddress.delete(address)
  }

  #closeIdle(): void {
    for (const pair of this.#webSockets) {
      const silent = pair.find((peer) => !peer.checkAlive())
      if (silent === undefined) continue
      this.#log.info({ side: silent.side }, 'silent WebSocket closed')
      for (const { socket } of pair) socket.terminate()
    }
  }
}

type WebSocketPair = readonly [browser: Peer, relay: Peer]

/** One side of a WebSocket. */
class Peer {
  readonly socket: WebSocket
  readonly side: 'browser' | 'relay'
  #hasSent = true
  #wasPinged = false

  constructor(socket: WebSocket, side: 'browser' | 'relay') {
    this.socket = socket
    this.side = side
    const received = (): void => {
      this.#hasSent = true
    }
    socket.on('message', received).on('ping', received).on('pong', received)
  }

  /** Pings after a silent interval. Returns false if the next one was silent too. */
  checkAlive(): boolean {
    // Nothing is read from a paused side, so its silence means nothing.
    const isAlive = this.#hasSent || this.socket.isPaused
    if (!isAlive && this.#wasPinged) return false
    this.#wasPinged = !isAlive
    if (!isAlive) this.socket.ping()
    this.#hasSent = false
    return true
  }
}

/** Stops reading from one side of a WebSocket while the other side is slow. */
export const applyBackPressure = (from: WebSocket, to: WebSocket): void => {
  if (from.isPaused || to.readyState !== WebSocket.OPEN || to.bufferedAmount <= MAX_UNSENT_BYTES) return
  from.pause()
  // The callback is called when the ping and everything before it was sent, or the connection closed.
  to.ping(undefined, undefined, () => from.resume())
}
