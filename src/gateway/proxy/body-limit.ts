import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.js'

// What is left of the body is not worth reading, so the connection ends with the answer.
const tooLarge = (): GatewayError => new GatewayError('BODY_TOO_LARGE', { headers: { connection: 'close' } })

/**
 * A streamed body that cannot grow past its limit. A declared length is judged at once and kept to by the HTTP parser;
 * only a body without one has to be counted.
 */
export const limitedBody = (request: FastifyRequest, body: Readable, maxBytes: number): Readable => {
  const declared = request.headers['content-length']
  if (declared !== undefined) {
    if (Number(declared) > maxBytes) throw tooLarge()
    return body
  }
  return pipeline(body, byteCounter(maxBytes), () => undefined)
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
