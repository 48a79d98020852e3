import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { urlOf } from '../../helper/address.js'
import type { RecordingBackend } from '../../helper/recording-backend.js'
import { APP } from './certificate.js'
import type { ExternalClient } from './external-client.js'
import { subscribe } from './subscribers.js'

interface Setup {
  readonly external: ExternalClient
  readonly backend: RecordingBackend
}

/** Tests of the application host, whose gateway passes realtime connections on to the relay (`RELAY_UPSTREAM`). */
export const applicationHostTests = (t: Test, { external, backend }: Setup): void => {
  for (const transport of ['websocket', 'http_stream'] as const)
    t.test(`a client uses ${transport} at the application host, and the proxy buffers nothing`, async (t) => {
      const { received } = await subscribe(t, external, transport, 'floor:5', { name: APP })

      for (const number of [1, 2]) {
        await external.publish('floor:5', number)
        await received.until((publications) => publications.length === number)
      }
      t.same(received.data, [1, 2])
    })

  t.test('the proxy delivers an event of the backend before the response ends', async (t) => {
    const { respond } = backend
    const responding = new Promise<ServerResponse>((resolve) => {
      backend.respond = (_request, response) => resolve(response)
    })
    const beginning = external.begin(APP, '/api/floors/events')
    const response = await responding
    backend.respond = respond
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: 1\n\n')
    const stream = await beginning
    const [first] = await once(stream, 'data')
    t.equal(String(first), 'data: 1\n\n')
    response.end('data: 2\n\n')
    const [second] = await once(stream, 'data')
    t.equal(String(second), 'data: 2\n\n')
  })
}

/** Stands in for a gateway: it ends some connections early, sets large cookies and returns what it received. Resolves with its address. */
export const startScriptedGateway = async (t: Test): Promise<string> => {
  const server = createServer({ maxHeaderSize: 32_768 }, (request, response) => {
    if (request.url === '/api/end-early') {
      request.socket.destroy()
      return
    }
    if (request.url === '/api/cookies') {
      response.setHeader(
        'set-cookie',
        ['a', 'b', 'c'].map((name) => `${name}=${'y'.repeat(4_000)}`)
      )
    }
    if (request.url === '/api/upgrade') response.end(`upgrade: ${request.headers.upgrade}`)
    else response.end(request.headers.cookie)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return new URL(urlOf(server)).host
}
