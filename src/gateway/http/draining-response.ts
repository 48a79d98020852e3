import type { IncomingMessage, ServerResponse } from 'node:http'

/** How much of a body is read, and for how long, after its response has been sent. */
export interface DrainLimits {
  readonly maxBytes: number
  readonly maxMs: number
}

/**
 * Extends the class of all responses of a server. A response that is sent before the body of its request is complete does not end
 * before the rest of the body was read and discarded. Closing a connection on which bytes are waiting resets it: a client
 * that is still sending, such as a reverse proxy, would lose the response. Beyond the limits the connection is closed.
 */
export const drainingResponse = (Response: typeof ServerResponse, limits: DrainLimits): typeof ServerResponse =>
  class<Request extends IncomingMessage = IncomingMessage> extends Response<Request> {
    #isDraining = false
    #isContinued = false

    override writeContinue(callback?: () => void): void {
      this.#isContinued = true
      super.writeContinue(callback)
    }

    override end(chunk?: unknown, encoding?: unknown, callback?: unknown): this {
      if (this.#isDraining) return this
      if (!this.#mustDrain()) return super.end(...([chunk, encoding, callback] as Parameters<ServerResponse['end']>))
      this.#isDraining = true
      // The client receives the complete response now, except for the end of a chunked one.
      if (typeof chunk === 'string' || Buffer.isBuffer(chunk)) this.write(chunk)
      this.flushHeaders()
      const stop = drain(this.req, limits, (isComplete) => {
        drains.delete(this)
        super.end()
        if (!isComplete) this.req.socket.destroySoon()
      })
      drains.set(this, stop)
      return this
    }

    #mustDrain(): boolean {
      const { complete, destroyed, headers, httpVersion } = this.req
      if (complete || destroyed || !hasBody(headers)) return false
      // A client that waits for `100 Continue` does not send its body now. HTTP/1.0 does not have it.
      if (headers.expect !== undefined && httpVersion === '1.1' && !this.#isContinued) return false
      // The client has already been given the time to send it.
      return this.statusCode !== REQUEST_TIMEOUT
    }
  }

/** Ends the draining of a response. */
const drains = new WeakMap<ServerResponse, () => void>()

/** Ends a response that waits for a body that cannot be read further, and its connection. Returns false if it does not wait. */
export const stopDraining = (response: ServerResponse): boolean => {
  const stop = drains.get(response)
  stop?.()
  return stop !== undefined
}

const REQUEST_TIMEOUT = 408

const hasBody = (headers: IncomingMessage['headers']): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/** Reads and discards the rest of a body. `done` receives whether it is complete. Returns a function that stops it. */
const drain = (
  request: IncomingMessage,
  { maxBytes, maxMs }: DrainLimits,
  done: (isComplete: boolean) => void
): (() => void) => {
  let bytes = 0
  const count = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > maxBytes) finish()
  }
  const finish = (): void => {
    clearTimeout(timer)
    request.off('data', count).off('end', finish).off('close', finish)
    done(request.complete)
  }
  const timer = setTimeout(finish, maxMs)
  // The reader that was interested in the body may have paused it.
  request.removeAllListeners('data')
  request.on('data', count).once('end', finish).once('close', finish).resume()
  return finish
}
