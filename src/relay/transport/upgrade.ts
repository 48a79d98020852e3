import type { IncomingMessage, Server, ServerOptions } from 'node:http'
import type { Duplex } from 'node:stream'

/** The types of Node 20 do not have this option, which newer versions of Node read. */
type UpgradeOptions = ServerOptions & { shouldUpgradeCallback: (request: IncomingMessage) => boolean }

export const WEBSOCKET_PATH = '/connection/websocket'

/** Everything else is served as an ordinary request: `Upgrade` is an offer, which a server may ignore (RFC 9110, 7.8). */
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

/** From 22.21 and 24.9 on, Node asks before it takes a connection out of HTTP. */
export const UPGRADE_OPTIONS: UpgradeOptions = { shouldUpgradeCallback: isWebSocketHandshake }

export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/**
 * Upgrades WebSocket handshakes. Older versions of Node take every connection whose client offers any upgrade out of
 * HTTP: such a request is put back onto its connection without the `Upgrade` header, and parsed once more.
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
