import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressSet } from '../../shared/address.js'
import { mayReadMetrics } from '../../shared/metrics-access.js'

/** The relay's numbers, for those on the network that may see them; for all others there is no such page. */
export const metricsRoute =
  (read: () => Promise<string>, contentType: string, allowed: () => AddressSet) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    request.resume()
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (!isRead || !mayReadMetrics(request, allowed())) {
      response.writeHead(404, ['Content-Length', '0']).end()
      return
    }
    read().then(
      (text) => {
        const headers = ['Content-Type', contentType, 'Cache-Control', 'no-store']
        response.writeHead(200, [...headers, 'Content-Length', String(Buffer.byteLength(text))]).end(text)
      },
      // A number that cannot be read is no reason to keep the reader waiting.
      () => response.writeHead(500, ['Content-Length', '0']).end()
    )
  }
