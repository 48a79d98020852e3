import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { urlOf } from './address.js'
import type { Teardown } from './child.js'
import { LOOPBACK } from './free-port.js'

/** The bytes of a request, with its body if it has a Content-Length. */
export interface RawRequest {
  readonly head: string
  readonly body: string
  readonly socket: Socket
  /** The number of earlier requests on all connections and on this one. */
  readonly index: number
  readonly indexOnConnection: number
}

export interface RawBackend {
  readonly url: string
  readonly requests: readonly RawRequest[]
  readonly connections: readonly Socket[]
  /** Handles the following requests. */
  respond: (request: RawRequest) => unknown
}

/** A backend that responds with arbitrary bytes. */
export const startRawBackend = async (t: Teardown, respond: RawBackend['respond']): Promise<RawBackend> => {
  const requests: RawRequest[] = []
  const connections: Socket[] = []
  const server = createServer((socket) => {
    connections.push(socket)
    // The gateway may reset a connection.
    socket.on('error', () => undefined)
    let indexOnConnection = 0
    let unread = ''
    socket.setEncoding('latin1').on('data', (bytes: string) => {
      unread += bytes
      for (let request = firstRequest(unread); request !== null; request = firstRequest(unread)) {
        unread = unread.slice(request.head.length + request.body.length)
        const arrived = { ...request, socket, index: requests.length, indexOnConnection: indexOnConnection++ }
        requests.push(arrived)
        backend.respond(arrived)
      }
    })
  })
  await once(server.listen(0, LOOPBACK), 'listening')
  t.teardown(() => {
    for (const socket of connections) socket.destroy()
    server.close()
  })
  const backend: RawBackend = { url: urlOf(server), requests, connections, respond }
  return backend
}

const firstRequest = (bytes: string): { head: string; body: string } | null => {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return null
  const head = bytes.slice(0, end + 4)
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  const body = bytes.slice(head.length, head.length + length)
  return body.length === length ? { head, body } : null
}

/** An HTTP server whose request listener the test provides. */
export const startHttpBackend = async (t: Teardown, listener: RequestListener): Promise<string> => {
  const server = createHttpServer(listener)
  await once(server.listen(0, LOOPBACK), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return urlOf(server)
}
