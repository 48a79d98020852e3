import type { IncomingMessage, Server, ServerOptions } from 'node:http'
import type { Duplex } from 'node:stream'

/** @types/node for Node 20 does not have this option of newer versions. */
type UpgradeOptions = ServerOptions & { shouldUpgradeCallback: (request: IncomingMessage) => boolean }

/** Whether a request is taken out of HTTP. */
export type UpgradeTest = (request: IncomingMessage) => boolean

/** Node 22.21 and 24.9 or newer call this before they take a connection out of HTTP. */
export const upgradeOptions = (test: UpgradeTest): UpgradeOptions => ({ shouldUpgradeCallback: test })

/** Other requests with `Upgrade` are ordinary requests: a server may ignore the header (RFC 9110, 7.8). */
export const isWebSocketHandshake = (request: IncomingMessage): boolean =>
  // The common case first: few requests have the header.
  request.headers.upgrade?.toLowerCase() === 'websocket' &&
  request.method === 'GET' &&
  // HTTP/1.0 has no upgrades: the client would not understand the response.
  request.httpVersion === '1.1' &&
  !hasBody(request)

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'

export const pathOf = ({ url = '' }: Pick<IncomingMessage, 'url'>): string => {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

/**
 * For older versions of Node, which take every request with an `Upgrade` header out of HTTP: puts a request back onto its
 * connection without that header, so that it is parsed again.
 */
export const returnToHttp = (server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void => {
  socket.unshift(Buffer.concat([Buffer.from(headWithoutUpgrade(request), 'latin1'), head]))
  server.emit('connection', socket)
}

const headWithoutUpgrade = ({ method, url, httpVersion, rawHeaders }: IncomingMessage): string => {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.toLowerCase() !== 'upgrade') head += `${name}: ${rawHeaders[index + 1]}\r\n`
  }
  return `${head}\r\n`
}
