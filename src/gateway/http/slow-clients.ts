import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { GatewayError } from '../errors.js'
import type { SendError } from './error-sender.js'
import type { OpenReplies } from './open-replies.js'

export interface RateLimits {
  readonly minBytesPerSecond: number
  /** The time over which the rate is measured. */
  readonly windowMs: number
}

export interface SlowClientsOptions extends RateLimits {
  readonly openReplies: OpenReplies
  readonly sendError: SendError
}

const SAMPLES_PER_WINDOW = 30

/**
 * Disconnects clients that send a body, or read a response, below the minimum rate. Only the time in which the gateway
 * waits for the client counts, not the time that the backend takes.
 */
export const slowClients = fp<SlowClientsOptions>(
  async (app, { openReplies, sendError, ...limits }) => {
    const rates = new WeakMap<FastifyReply, ClientRates>()
    const check = (reply: FastifyReply, socket: Socket, now: number): void => {
      if (socket.destroyed) return
      let clientRates = rates.get(reply)
      if (clientRates === undefined) {
        clientRates = { body: new Rate(limits), response: new Rate(limits) }
        rates.set(reply, clientRates)
      }
      if (clientRates.body.isTooLow(isReadingBody(reply), socket.bytesRead, now)) endSender(reply, sendError)
      // Bytes that the operating system has not taken yet have not been read by the client.
      const unsent = reply.raw.socket === null ? 0 : socket.writableLength
      if (clientRates.response.isTooLow(unsent > 0, socket.bytesWritten - unsent, now)) reply.raw.destroy(tooSlow())
    }
    const timer = setInterval(() => {
      const now = performance.now()
      for (const { socket, replies } of openReplies) for (const reply of replies.slice()) check(reply, socket, now)
    }, limits.windowMs / SAMPLES_PER_WINDOW)
    timer.unref()
    app.addHook('onClose', async () => clearInterval(timer))
  },
  { name: 'slow-clients', fastify: '5.x', dependencies: ['error-handling'] }
)

interface ClientRates {
  readonly body: Rate
  readonly response: Rate
}

/** False while the reader of the body has paused it: then the gateway does not wait for the client. */
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

/** Bytes per time over the last window, while the gateway waits for the client. */
class Rate {
  readonly #windowMs: number
  readonly #minBytes: number
  #samples: Sample[] = []

  constructor({ minBytesPerSecond, windowMs }: RateLimits) {
    this.#windowMs = windowMs
    this.#minBytes = (minBytesPerSecond * windowMs) / 1000
  }

  isTooLow(isWaiting: boolean, bytes: number, now: number): boolean {
    if (!isWaiting) {
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
