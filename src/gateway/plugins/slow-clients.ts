import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { GatewayError } from '../errors.js'
import type { SendError } from './error-handling.js'

export interface RateLimits {
  readonly minBytesPerSecond: number
  /** The time over which the rate is measured. */
  readonly windowMs: number
}

const SAMPLES_PER_WINDOW = 30

/**
 * Ends clients that send a body, or read a response, slower than the limit. Only the time counts in which the gateway waits
 * for the client: a backend that is slow to take a body or to answer costs the client nothing. Returns how to stop.
 */
export const endSlowClients = (open: OpenReplies, limits: RateLimits, sendError: SendError): (() => void) => {
  const progress = new WeakMap<FastifyReply, Progress>()
  const check = (reply: FastifyReply, socket: Socket, now: number): void => {
    if (socket.destroyed) return
    let { body, response } = progress.get(reply) ?? NO_PROGRESS
    if (body === null || response === null) {
      body = new Rate(limits)
      response = new Rate(limits)
      progress.set(reply, { body, response })
    }
    if (body.isTooLow(isReadingBody(reply), socket.bytesRead, now)) endSender(reply, sendError)
    // What the operating system has not taken yet is still to be read by the client.
    const unsent = reply.raw.socket === null ? 0 : socket.writableLength
    if (response.isTooLow(unsent > 0, socket.bytesWritten - unsent, now)) reply.raw.destroy(tooSlow())
  }
  const timer = setInterval(() => {
    const now = performance.now()
    for (const [reply, socket] of open) check(reply, socket, now)
  }, limits.windowMs / SAMPLES_PER_WINDOW)
  timer.unref()
  return () => clearInterval(timer)
}

interface Progress {
  readonly body: Rate | null
  readonly response: Rate | null
}

const NO_PROGRESS: Progress = { body: null, response: null }

/** False while the reader of the body has paused it: then it is not the client that the gateway waits for. */
const isReadingBody = ({ request: { raw } }: FastifyReply): boolean => !raw.complete && raw.readableFlowing === true

const endSender = (reply: FastifyReply, sendError: SendError): void => {
  if (reply.sent || reply.raw.headersSent) reply.raw.destroy(tooSlow())
  else sendError(new GatewayError('REQUEST_TIMEOUT', { headers: { connection: 'close' } }), reply)
}

const tooSlow = (): Error => new Error('the client is too slow')

interface Sample {
  readonly at: number
  readonly bytes: number
}

/** Bytes per time over the last window, as long as there is something to wait for. */
class Rate {
  readonly #windowMs: number
  readonly #minBytes: number
  #samples: Sample[] = []

  constructor({ minBytesPerSecond, windowMs }: RateLimits) {
    this.#windowMs = windowMs
    this.#minBytes = (minBytesPerSecond * windowMs) / 1000
  }

  isTooLow(waiting: boolean, bytes: number, now: number): boolean {
    if (!waiting) {
      this.#samples = []
      return false
    }
    this.#samples.push({ at: now, bytes })
    const [oldest] = this.#samples
    if (oldest === undefined || now - oldest.at < this.#windowMs) return false
    this.#samples.shift()
    return bytes - oldest.bytes < this.#minBytes
  }
}

/**
 * The replies that are not out yet, of all connections, in the order in which their requests arrived, each with its
 * connection: a request loses its socket when its body is read, and a response has none before its turn.
 */
export class OpenReplies implements Iterable<readonly [FastifyReply, Socket]> {
  readonly #sockets = new Map<FastifyReply, Socket>()

  add(reply: FastifyReply): void {
    this.#sockets.set(reply, reply.request.raw.socket)
  }

  delete(reply: FastifyReply): void {
    this.#sockets.delete(reply)
  }

  /** The replies of one connection: several where the client did not wait for one before its next request. */
  on(socket: Socket): FastifyReply[] {
    return [...this].filter(([, other]) => other === socket).map(([reply]) => reply)
  }

  [Symbol.iterator](): Iterator<readonly [FastifyReply, Socket]> {
    return this.#sockets.entries()
  }
}
