import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.js'
import { requestBody } from '../http/request-body.js'

// Only a part of the rest is read, so the connection is closed.
const tooLarge = (): GatewayError => new GatewayError('BODY_TOO_LARGE', { headers: { connection: 'close' } })

/**
 * Limits the size of a streamed body. A Content-Length is checked at once, and the HTTP parser enforces it; only a
 * chunked body is counted.
 */
export const limitedBody = (request: FastifyRequest, body: Readable, maxBytes: number): Readable => {
  const detached = body === request.raw ? requestBody(request.raw) : body
  const declared = request.headers['content-length']
  if (declared !== undefined) {
    if (Number(declared) > maxBytes) throw tooLarge()
    return detached
  }
  return pipeline(detached, byteCounter(maxBytes), () => undefined)
}

const byteCounter = (maxBytes: number): Transform => {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
      bytes += chunk.length
      if (bytes > maxBytes) done(tooLarge())
      else done(null, chunk)
    }
  })
}
