import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Client } from 'undici'
import { onceClosed } from '../request-context.js'
import type { BackendSlots, Waiter } from './backend.js'
import { type Backend, type BackendWatch, toBackendError } from './backend.js'
import { MAX_STATUS } from './forward.js'
import { backendRequestHeaders } from './request-headers.js'
import { browserResponseHeaders, withoutNames } from './response-headers.js'

/** A whole answer of the backend. */
export interface BackendAnswer {
  readonly status: number
  /** As they go to the browser: names and values by turns. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

export interface BackendCallParts {
  readonly backend: Backend
  readonly publicHost: string | null
  readonly watch: BackendWatch
}

/** Sends the request of a reply on with this body. Throws the refusal that the browser gets where there is no answer. */
export type BackendCall = (reply: FastifyReply, body: string | null) => Promise<BackendAnswer>

// Many times what a session takes; its answer is held in memory, and many sign in at the same time.
const MAX_ANSWER_BYTES = 1024 * 1024

// The answer has to be read here, so it must not come compressed.
const COMPRESSIONS: ReadonlySet<string> = new Set(['accept-encoding'])

/** The way out for what has to be read before it is answered. Else it keeps to the rules of the forwarder. */
export const backendCaller = ({ backend, publicHost, watch }: BackendCallParts): BackendCall => {
  const exchange = async (reply: FastifyReply, body: string | null, gone: AbortSignal): Promise<BackendAnswer> => {
    const startedAt = performance.now()
    const { connection, waitedMs, leave } = await turn(backend.slots, gone)
    try {
      const answer = await connection.request({
        method: 'POST',
        path: `${backend.pathPrefix}${reply.request.raw.url}`,
        headers: [
          ...withoutNames(
            backendRequestHeaders(reply.request, publicHost, body === null ? 'none' : 'json'),
            COMPRESSIONS
          ),
          'accept-encoding',
          'identity'
        ],
        body,
        headersTimeout: Math.max(1, backend.timeoutMs - waitedMs),
        signal: gone,
        responseHeaders: 'raw'
      })
      const { statusCode: status, body: stream } = answer
      if (status > MAX_STATUS) {
        stream.destroy()
        throw new Error(`no answer can have the status ${status}`)
      }
      watch.answered(reply.request, (performance.now() - startedAt) / 1000)
      // What "raw" makes of them, whatever the types say.
      const raw = answer.headers as unknown as string[]
      const headers = browserResponseHeaders(raw, backend.address, reply.getHeaders())
      return { status, headers, body: await wholeBody(stream) }
    } catch (error) {
      if (!gone.aborted) watch.failed(error)
      throw error
    } finally {
      leave()
    }
  }

  return async (reply, body) => {
    const gone = new AbortController()
    onceClosed(reply.raw, () => gone.abort(new Error('the browser went away')))
    try {
      return await exchange(reply, body, gone.signal)
    } catch (error) {
      throw toBackendError(error)
    }
  }
}

export interface Turn {
  readonly connection: Client
  readonly waitedMs: number
  readonly leave: () => void
}

/** Waits for a connection of its own; whoever gets one must leave it. */
export const turn = (slots: BackendSlots, gone: AbortSignal): Promise<Turn> =>
  new Promise((resolve, reject) => {
    const waiter: Waiter = {
      streams: false,
      // Signing in must work while anonymous requests use up their share; the login limit bounds these calls.
      anonymous: false,
      run: (connection, waitedMs) => resolve({ connection, waitedMs, leave: () => slots.leave(waiter, connection) }),
      reject
    }
    slots.enter(waiter)
    gone.addEventListener('abort', () => {
      slots.giveUp(waiter)
      reject(gone.reason)
    })
  })

export const wholeBody = async (stream: Readable): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let bytes = 0
  // Leaving the loop ends the stream, and with it the connection.
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
