import type { IncomingMessage, Server, ServerOptions } from 'node:http'
import type { Duplex } from 'node:stream'

/** @types/node for Node 20 does not have this option of newer versions. */
type UpgradeOptions = ServerOptions & { shouldUpgradeCallback: (request: IncomingMessage) => boolean }

export const WEBSOCKET_PATH = '/connection/websocket'

/** Other requests with `Upgrade` are ordinary requests: a server may ignore the header (RFC 9110, 7.8). */
const isWebSocketHandshake = (request: IncomingMessage): boolean =>
  request.method === 'GET' &&
  request.headers.upgrade?.toLowerCase() === 'websocket' &&
  pathOf(request) === WEBSOCKET_PATH &&
  !hasBody(request)

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'

export const pathOf = ({ url = '' }: IncomingMessage): string => {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

/** Node 22.21 and 24.9 or newer call this before they take a connection out of HTTP. */
export const UPGRADE_OPTIONS: UpgradeOptions = { shouldUpgradeCallback: isWebSocketHandshake }

export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/**
 * Upgrades WebSocket handshakes. Older versions of Node take every request with an `Upgrade` header out of HTTP: other
 * requests are put back onto their connection without that header, and parsed again.
 */
export const onUpgrade = (server: Server, upgrade: Upgrade): void => {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (isWebSocketHandshake(request)) {
      upgrade(request, socket, head)
      return
    }
    socket.unshift(Buffer.concat([Buffer.from(headWithoutUpgrade(request), 'latin1'), head]))
    server.emit('connection', socket)
  })
}

const headWithoutUpgrade = ({ method, url, httpVersion, rawHeaders }: IncomingMessage): string => {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.toLowerCase() !== 'upgrade') head += `${name}: ${rawHeaders[index + 1]}\r\n`
  }
  return `${head}\r\n`
}
