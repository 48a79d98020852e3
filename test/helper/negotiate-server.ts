import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { urlOf } from './address.js'
import type { Teardown } from './child.js'

/** A backend that responds to `/api/negotiate` as the test configures it. */
export interface NegotiateServer {
  readonly url: string
  /** The number of requests. */
  readonly requestCount: number
  /** Settles after this number of requests. */
  untilRequests(times: number): Promise<void>
  respond: (times: number, response: ServerResponse) => void
}

export const negotiation = (url: string, token: string): string =>
  JSON.stringify({ success: true, data: { url, token, expiresIn: 3600 } })

export const startNegotiateServer = async (
  t: Teardown,
  respond: NegotiateServer['respond']
): Promise<NegotiateServer> => {
  let requestCount = 0
  let waiters: { readonly times: number; readonly done: () => void }[] = []
  const server = createServer((_request, response) => {
    requestCount += 1
    response.setHeader('content-type', 'application/json')
    result.respond(requestCount, response)
    for (const { times, done } of waiters) if (requestCount >= times) done()
    waiters = waiters.filter(({ times }) => requestCount < times)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })

  const result: NegotiateServer = {
    url: urlOf(server),
    get requestCount() {
      return requestCount
    },
    untilRequests: (times) =>
      new Promise((done) => {
        if (requestCount >= times) done()
        else waiters.push({ times, done })
      }),
    respond
  }
  return result
}
