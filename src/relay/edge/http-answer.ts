import type { IncomingMessage, ServerResponse } from 'node:http'

export type Headers = readonly string[]

/** One write for head and body; headers as a flat list, which Node does not have to take apart. */
export const answer = (response: ServerResponse, status: number, body = '', headers: Headers = []): void => {
  response.writeHead(status, ['Content-Length', String(Buffer.byteLength(body)), ...headers])
  response.end(body)
}

export const JSON_TYPE: Headers = ['Content-Type', 'application/json']
export const TEXT_TYPE: Headers = ['Content-Type', 'text/plain; charset=utf-8']

/** Neither caches nor proxies may hold back what is said; and where a stream ends, nothing follows. */
export const LIVE: Headers = [
  'Cache-Control',
  'no-store, no-transform',
  'X-Accel-Buffering',
  'no',
  'Connection',
  'close'
]

/** Hands over the whole body, or answers 413, with these headers, where it is too long. A request that breaks off is never handed over. */
export const readBody = (
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  done: (body: Buffer) => void,
  headers: Headers = []
): void => {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > maxBytes) {
    refuseBody(request, response, headers)
    return
  }
  let first: Buffer | null = null
  let chunks: Buffer[] | null = null
  let length = 0
  request.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxBytes) {
      if (!response.headersSent) refuseBody(request, response, headers)
      return
    }
    if (first === null) first = chunk
    else {
      chunks ??= [first]
      chunks.push(chunk)
    }
  })
  request.on('end', () => {
    if (length > maxBytes) return
    done(chunks !== null ? Buffer.concat(chunks, length) : (first ?? Buffer.alloc(0)))
  })
  request.on('error', () => undefined)
}

/** The rest of the body is not waited for. */
const refuseBody = (request: IncomingMessage, response: ServerResponse, headers: Headers): void => {
  answer(response, 413, 'body too large\n', [...TEXT_TYPE, 'Connection', 'close', ...headers])
  response.once('finish', () => request.destroy())
}

/** How long a client may take to send the body of a request that anybody may send. */
export const BODY_TIMEOUT_MS = 10_000

/** Answers 408 and closes the connection where the body is not complete in time. */
export const limitBodyTime = (
  request: IncomingMessage,
  response: ServerResponse,
  withinMs: number,
  headers: Headers = []
): void => {
  const timer = setTimeout(() => {
    if (response.headersSent) return
    answer(response, 408, 'body too slow\n', [...TEXT_TYPE, 'Connection', 'close', ...headers])
    response.once('finish', () => request.destroy())
  }, withinMs)
  request.once('end', () => clearTimeout(timer))
  request.once('close', () => clearTimeout(timer))
}
