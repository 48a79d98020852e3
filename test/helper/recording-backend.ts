import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse
} from 'node:http'
import { text } from 'node:stream/consumers'
import { urlOf } from './address.js'
import type { Teardown } from './child.js'

export interface RecordedRequest {
  readonly method: string
  /** The unmodified request target. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A server that records its requests. A test may replace `respond` at any time. */
export interface RecordingBackend {
  readonly url: string
  readonly server: Server
  readonly requests: RecordedRequest[]
  respond: (request: RecordedRequest, response: ServerResponse) => void
}

export const startBackend = async (t: Teardown): Promise<RecordingBackend> => {
  const requests: RecordedRequest[] = []
  const server = createServer(async (incoming, response) => {
    const request = await record(incoming)
    requests.push(request)
    backend.respond(request, response)
  })
  // Never closes idle connections: a request could otherwise meet a connection that is just being closed.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise<unknown>((resolve) => server.close(resolve))
  })

  const backend: RecordingBackend = {
    url: urlOf(server),
    server,
    requests,
    respond: (_request, response) => {
      response.setHeader('content-type', 'application/json')
      response.end('{"success":true}')
    }
  }
  return backend
}

const record = async (incoming: IncomingMessage): Promise<RecordedRequest> => {
  const { method = '', url = '', headers } = incoming
  return { method, url, headers, body: await text(incoming) }
}
