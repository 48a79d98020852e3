import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Teardown } from './child.js'

/** A backend that responds to `/api/negotiate` as the test configures it. */
export interface NegotiateServer {
  readonly url: string
  /** The number of requests. */
  readonly asked: number
  /** Settles after this number of requests. */
  askedTimes(times: number): Promise<void>
  answer: (times: number, response: ServerResponse) => void
}

export const negotiation = (url: string, token: string): string =>
  JSON.stringify({ success: true, data: { url, token, expiresIn: 3600 } })

export const startNegotiateServer = async (
  t: Teardown,
  answer: NegotiateServer['answer']
): Promise<NegotiateServer> => {
  let asked = 0
  let waiting: { readonly times: number; readonly done: () => void }[] = []
  const server = createServer((_request, response) => {
    asked += 1
    response.setHeader('content-type', 'application/json')
    result.answer(asked, response)
    for (const { times, done } of waiting) if (asked >= times) done()
    waiting = waiting.filter(({ times }) => asked < times)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })

  const result: NegotiateServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get asked() {
      return asked
    },
    askedTimes: (times) =>
      new Promise((done) => {
        if (asked >= times) done()
        else waiting.push({ times, done })
      }),
    answer
  }
  return result
}
