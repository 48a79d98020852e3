import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { isWebSocketHandshake, pathOf, returnToHttp, upgradeOptions } from '../../shared/http-upgrade.js'

export const WEBSOCKET_PATH = '/connection/websocket'
export const UNIDIRECTIONAL_WEBSOCKET_PATH = '/connection/uni_websocket'

const WEBSOCKET_PATHS: ReadonlySet<string> = new Set([WEBSOCKET_PATH, UNIDIRECTIONAL_WEBSOCKET_PATH])

const isUpgrade = (request: IncomingMessage): boolean =>
  isWebSocketHandshake(request) && WEBSOCKET_PATHS.has(pathOf(request))

export const UPGRADE_OPTIONS = upgradeOptions(isUpgrade)

export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Upgrades WebSocket handshakes. All other requests are served as ordinary requests. */
export const onUpgrade = (server: Server, upgrade: Upgrade): void => {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (isUpgrade(request)) upgrade(request, socket, head)
    else returnToHttp(server, request, socket, head)
  })
}
