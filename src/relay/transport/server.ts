import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'
import { hasTooManyHeaderLines, keepAllHeaderLines } from '../../shared/header-lines.js'
import { pathOf } from '../../shared/http-upgrade.js'
import type { AddressSet } from '../../shared/ip-address.js'
import { listenError } from '../../shared/listen-error.js'
import { mayReadMetrics } from '../../shared/metrics-access.js'
import type { RelayConfig } from '../config/config.js'
import type { Relay } from '../core/relay.js'
import type { ClientAdmission } from './admission.js'
import { HttpDrain } from './http-drain.js'
import {
  emulation,
  httpStream,
  serverSentEvents,
  unidirectionalEvents,
  unidirectionalHttpStream
} from './http-stream.js'
import type { Rejections } from './rejections.js'
import { type HttpHandler, JSON_TYPE, type RequestErrors, respond } from './respond.js'
import { emptyResponse, rejectUpgrade, unidirectionalWebSocketUpgrade, webSocketUpgrade } from './websocket.js'
import { onUpgrade, UNIDIRECTIONAL_WEBSOCKET_PATH, UPGRADE_OPTIONS, WEBSOCKET_PATH } from './websocket-upgrade.js'

export interface ServerDependencies {
  readonly relay: Relay
  readonly admission: ClientAdmission
  readonly rejections: Rejections
  readonly errors: RequestErrors
  /** Called after each HTTP response with the pattern of its route. Upgrades are not included. */
  readonly responded: (path: string, method: string, status: number) => void
  /** The current options of the unidirectional transports. */
  readonly unidirectional: () => RelayConfig['unidirectional']
  /** Handlers beside the client transports, by path. `/api/*` stands for all paths below `/api/`. */
  readonly routes: Readonly<Record<string, HttpHandler>>
}

export interface RelayServer {
  readonly server: Server
  /** Closes the HTTP connections, each after the responses to its requests. WebSocket connections stay open. */
  drain(): void
}

/** Time to receive a complete request. */
const REQUEST_TIMEOUT_MS = 60_000

/** The HTTP server with the client transports and the given routes, not listening yet. */
export const buildServer = ({
  relay,
  admission,
  rejections,
  errors,
  responded,
  unidirectional,
  routes
}: ServerDependencies): RelayServer => {
  const upgradeRequired: HttpHandler = (request, response) => {
    request.resume()
    rejections.missingUpgrade(admission.addressOf(request))
    respond(response, 426, '', ['Upgrade', 'websocket'])
  }
  const eventBodyBytes = (): number => unidirectional().sse.maxBodyBytes
  const streamBodyBytes = (): number => unidirectional().httpStream.maxBodyBytes
  const handlers = new Map(
    Object.entries<HttpHandler>({
      ...routes,
      '/connection/http_stream': httpStream(relay, admission, errors),
      '/connection/sse': serverSentEvents(relay, admission, errors),
      '/emulation': emulation(relay, admission, errors),
      [WEBSOCKET_PATH]: upgradeRequired,
      '/connection/uni_sse': ifEnabled(
        () => unidirectional().sse.enabled,
        unidirectionalEvents(relay, admission, errors, eventBodyBytes)
      ),
      '/connection/uni_http_stream': ifEnabled(
        () => unidirectional().httpStream.enabled,
        unidirectionalHttpStream(relay, admission, errors, streamBodyBytes)
      ),
      [UNIDIRECTIONAL_WEBSOCKET_PATH]: ifEnabled(() => unidirectional().webSocket.enabled, upgradeRequired)
    })
  )
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const path = pathOf(request)
    if (hasTooManyHeaderLines(request)) {
      request.resume()
      respond(response, 431, '', ['Connection', 'close'])
      return
    }
    const prefix = `${path.slice(0, path.indexOf('/', 1) + 1)}*`
    const pattern = handlers.has(path) ? path : handlers.has(prefix) ? prefix : UNKNOWN_PATH
    response.once('close', () => responded(pattern, request.method ?? '', response.statusCode))
    const handler = handlers.get(pattern) ?? notFound
    handler(request, response, path)
  }

  const server = createServer(
    { noDelay: true, keepAliveTimeout: 75_000, requestTimeout: REQUEST_TIMEOUT_MS, ...UPGRADE_OPTIONS },
    (request, response) => {
      try {
        handle(request, response)
      } catch (error) {
        errors.fail(response, error)
      }
    }
  )
  keepAllHeaderLines(server)
  const connections = new HttpDrain(server)
  const upgrade = webSocketUpgrade(relay, admission, errors)
  const messageBytes = (): number => unidirectional().webSocket.maxMessageBytes
  const unidirectionalUpgrade = unidirectionalWebSocketUpgrade(relay, admission, errors, messageBytes)
  onUpgrade(server, (request, socket, head) => {
    try {
      connections.release(request.socket)
      if (hasTooManyHeaderLines(request)) rejectUpgrade(socket, 431)
      else if (pathOf(request) === WEBSOCKET_PATH) upgrade(request, socket, head)
      else if (unidirectional().webSocket.enabled) unidirectionalUpgrade(request, socket, head)
      else rejectUpgrade(socket, 404)
    } catch (error) {
      errors.report(error)
      socket.destroy()
    }
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
  return { server, drain: () => connections.drain() }
}

const UNKNOWN_PATH = 'other'

/** 404 while the feature is disabled. */
const ifEnabled =
  (isEnabled: () => boolean, handler: HttpHandler): HttpHandler =>
  (request, response, path) =>
    (isEnabled() ? handler : notFound)(request, response, path)

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

/** Resolves when the server listens. Throws `SettingsError` if a setting is the reason that it cannot. */
export const listen = async (server: NetServer, { host, port }: RelayConfig['listen']): Promise<AddressInfo> => {
  try {
    server.listen(port, host)
    await once(server, 'listening')
    // A server that listens on a TCP port has an `AddressInfo`; strings are for pipes.
    return server.address() as AddressInfo
  } catch (error) {
    throw listenError(error, { host: 'RELAY_HOST', port: 'RELAY_PORT' })
  }
}
