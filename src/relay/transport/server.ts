import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, ListenOptions, Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { hasTooManyHeaderLines, keepAllHeaderLines } from '../../shared/header-lines.js'
import { isWebSocketHandshake, pathOf, returnToHttp, upgradeOptions } from '../../shared/http-upgrade.js'
import type { AddressSet } from '../../shared/ip-address.js'
import { type ListenSettings, listenError } from '../../shared/listen-error.js'
import { mayReadMetrics } from '../../shared/metrics-access.js'
import type { RelayConfig } from '../config/config.js'
import { after, type MaybePromise, orElse } from '../core/maybe-promise.js'
import { HttpDrain } from './http-drain.js'
import { type HttpHandler, JSON_TYPE, type RequestErrors, respond } from './respond.js'
import { emptyResponse, rejectUpgrade, type Upgrade } from './websocket.js'

export type Routes = Readonly<Record<string, HttpHandler>>

export interface ServerDependencies {
  readonly errors: RequestErrors
  /** Called after each response with the pattern of its route. A WebSocket connection has the status 101. */
  readonly responded: (path: string, method: string, status: number) => void
  /** Handlers by path. `/api/*` stands for all paths below `/api/`. */
  readonly routes: Routes
  /** Handlers of WebSocket handshakes by path. Other handshakes are served as ordinary requests. */
  readonly upgrades: Readonly<Record<string, Upgrade>>
}

export interface RelayServer {
  readonly server: Server
  /** Ends each HTTP connection with its next response. */
  announceShutdown(): void
  /** Closes the HTTP connections, each after the responses to its requests. WebSocket connections stay open. */
  drain(): void
}

/** Time to receive a complete request. */
const REQUEST_TIMEOUT_MS = 60_000

/** An HTTP server with the given routes, not listening yet. */
export const buildServer = ({ errors, responded, routes, upgrades }: ServerDependencies): RelayServer => {
  const handlers = new Map(Object.entries(routes))
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const path = pathOf(request)
    const prefix = `${path.slice(0, path.indexOf('/', 1) + 1)}*`
    const pattern = handlers.has(path) ? path : handlers.has(prefix) ? prefix : UNKNOWN_PATH
    response.once('close', () => responded(pattern, request.method ?? '', response.statusCode))
    if (hasTooManyHeaderLines(request)) {
      request.resume()
      respond(response, 431, '', ['Connection', 'close'])
      return
    }
    const handler = handlers.get(pattern) ?? notFound
    handler(request, response, path)
  }

  const isUpgrade = (request: IncomingMessage): boolean =>
    isWebSocketHandshake(request) && Object.hasOwn(upgrades, pathOf(request))
  const server = createServer(
    { noDelay: true, keepAliveTimeout: 75_000, requestTimeout: REQUEST_TIMEOUT_MS, ...upgradeOptions(isUpgrade) },
    (request, response) => {
      try {
        connections.beforeResponse(response)
        handle(request, response)
      } catch (error) {
        errors.fail(response, error)
      }
    }
  )
  keepAllHeaderLines(server)
  const connections = new HttpDrain(server)
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): MaybePromise<void> => {
    connections.release(request.socket)
    const path = pathOf(request)
    const handler = hasTooManyHeaderLines(request) ? undefined : upgrades[path]
    return after(handler === undefined ? rejectUpgrade(socket, 431) : handler(request, socket, head), (status) => {
      if (status !== null) responded(path, 'GET', status)
    })
  }
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!isUpgrade(request)) {
      returnToHttp(server, request, socket, head)
      return
    }
    orElse(
      () => upgrade(request, socket, head),
      (error) => {
        errors.report(error)
        socket.destroy()
      }
    )
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable) {
      socket.destroy()
      return
    }
    const status = PARSER_STATUSES[error.code ?? ''] ?? 400
    // Destroyed, so that the client cannot keep the connection half open.
    socket.end(emptyResponse(status), () => socket.destroy())
  })
  return { server, announceShutdown: () => connections.announce(), drain: () => connections.drain() }
}

const UNKNOWN_PATH = 'other'

/** 404 while the feature is disabled. */
export const ifEnabled =
  (isEnabled: () => boolean, handler: HttpHandler): HttpHandler =>
  (request, response, path) =>
    (isEnabled() ? handler : notFound)(request, response, path)

export const routesIf = (isEnabled: () => boolean, routes: Routes): Routes =>
  Object.fromEntries(Object.entries(routes).map(([path, handler]) => [path, ifEnabled(isEnabled, handler)]))

const notFound: HttpHandler = (request, response) => {
  request.resume()
  respond(response, 404)
}

/** Errors of Node's HTTP parser with a status of their own. */
const PARSER_STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408
}

/** 200 while the relay can serve clients, else 503, for load balancers. */
export const healthRoute =
  (isServing: () => boolean): HttpHandler =>
  (request, response) => {
    request.resume()
    if (request.method !== 'GET' && request.method !== 'HEAD') respond(response, 405, '', ['Allow', 'GET, HEAD'])
    else if (isServing()) respond(response, 200, '{"status":"ok"}', [...JSON_TYPE, 'Cache-Control', 'no-store'])
    else respond(response, 503, '{"status":"unavailable"}', [...JSON_TYPE, 'Cache-Control', 'no-store'])
  }

/** Prometheus metrics for the allowed addresses; 404 for all others. */
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
      () => response.writeHead(500, ['Content-Length', '0']).end()
    )
  }

/** Resolves when the server listens. Throws `SettingsError` if one of these settings is the reason that it cannot. */
export const listen = async (
  server: NetServer,
  { host, port }: RelayConfig['listen'],
  settings: ListenSettings,
  options: ListenOptions = {}
): Promise<AddressInfo> => {
  try {
    server.listen({ ...options, host, port })
    await once(server, 'listening')
    // A server that listens on a TCP port has an `AddressInfo`; strings are for pipes.
    return server.address() as AddressInfo
  } catch (error) {
    throw listenError(error, settings)
  }
}
