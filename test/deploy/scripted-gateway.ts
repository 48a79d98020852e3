import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { urlOf } from '../helper/address.js'

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
