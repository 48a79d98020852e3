import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AddressSet } from '../../shared/address.js'
import { hasTooManyHeaderLines, keepAllHeaderLines } from '../../shared/header-lines.js'
import { listenFault } from '../../shared/listen-fault.js'
import { mayReadMetrics } from '../../shared/metrics-access.js'
import { ApiDispatcher, type ApiMetrics, publishApi } from '../api/api.js'
import type { RelayConfig } from '../config/config.js'
import type { Log, Relay } from '../core/relay.js'
import type { ClientAdmission } from './admission.js'
import { ConnectionDrain } from './connection-drain.js'
import { emulation, type HttpRoute, httpStream, serverSentEvents } from './http-stream.js'
import type { RecentRejections, Rejections } from './rejections.js'
import { failRequest, JSON_TYPE, reportFailure, respond } from './respond.js'
import { onUpgrade, pathOf, UPGRADE_OPTIONS, WEBSOCKET_PATH } from './upgrade.js'
import { emptyAnswer, refuseUpgrade, webSocketUpgrade } from './websocket.js'

export interface ServerParts {
  readonly relay: Relay
  readonly door: ClientAdmission
  readonly config: () => RelayConfig
  readonly log: Log
  readonly watch: ApiMetrics
  readonly troubles: RecentRejections
  readonly rejections: Rejections
  /** All of `/admin`, which has a table of paths of its own. */
  readonly admin: (calls: ApiDispatcher) => HttpRoute
  /** Further paths: health, metrics. */
  readonly routes: Readonly<Record<string, HttpRoute>>
}

export interface RelayServer {
  readonly server: Server
  /** Ends the HTTP connections, each after the requests that have arrived. WebSockets stay. */
  drain(): void
}

/** The only file that knows paths. */
export const buildServer = (parts: ServerParts): RelayServer => {
  const { relay, door, config, log, watch, troubles, rejections, routes } = parts
  const upgrade = webSocketUpgrade(relay, door)
  const calls = new ApiDispatcher(relay, watch, log)
  const admin = parts.admin(calls)
  const api = publishApi({
    calls,
    config: () => config().api,
    isLeaving: () => door.isClosed,
    refused: (reason, request) => rejections.key(reason, door.addressOf(request)),
    failed: (error) => {
      watch.unexpectedError('api')
      log.error({ err: error, source: 'api' }, 'request failed')
    }
  })
  const paths: Readonly<Record<string, HttpRoute>> = {
    ...routes,
    '/connection/http_stream': httpStream(relay, door),
    '/connection/sse': serverSentEvents(relay, door),
    '/emulation': emulation(relay, door),
    // A client that asks without upgrading is told what is missing.
    [WEBSOCKET_PATH]: (request, response) => {
      request.resume()
      troubles.add('upgrade', door.addressOf(request))
      respond(response, 426, '', ['Upgrade', 'websocket'])
    }
  }

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    if (hasTooManyHeaderLines(request)) {
      request.resume()
      respond(response, 431, '', ['Connection', 'close'])
      return
    }
    const path = pathOf(request)
    if (path === '/api') api(request, response, '')
    else if (path.startsWith('/api/')) api(request, response, path.slice('/api/'.length))
    else if (path === '/admin' || path.startsWith('/admin/')) admin(request, response)
    else if (Object.hasOwn(paths, path)) paths[path]?.(request, response)
    else {
      request.resume()
      respond(response, 404)
    }
  }

  const server = createServer(
    { noDelay: true, keepAliveTimeout: 75_000, requestTimeout: REQUEST_TIMEOUT_MS, ...UPGRADE_OPTIONS },
    (request, response) => {
      try {
        handle(request, response)
      } catch (error) {
        failRequest(relay.context, response, error)
      }
    }
  )
  keepAllHeaderLines(server)
  const connections = new ConnectionDrain(server)
  onUpgrade(server, (request, socket, head) => {
    try {
      connections.release(request.socket)
      if (hasTooManyHeaderLines(request)) refuseUpgrade(socket, 431)
      else upgrade(request, socket, head)
    } catch (error) {
      reportFailure(relay.context, error)
      socket.destroy()
    }
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable) {
      socket.destroy()
      return
    }
    const status = PARSER_STATUSES[error.code ?? ''] ?? 400
    // Not left half open for as long as the other side likes.
    socket.end(emptyAnswer(status), () => socket.destroy())
  })
  return { server, drain: () => connections.drain() }
}

/** For receiving a whole request, whatever its path. */
const REQUEST_TIMEOUT_MS = 60_000

/** Errors of Node's HTTP parser that have a status of their own. */
const PARSER_STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408
}

/** 200 while clients can be served; load balancers send them elsewhere otherwise. */
export const health =
  (isServing: () => boolean): HttpRoute =>
  (request, response) => {
    request.resume()
    if (request.method !== 'GET' && request.method !== 'HEAD') respond(response, 405, '', ['Allow', 'GET, HEAD'])
    else if (isServing()) respond(response, 200, '{"status":"ok"}', [...JSON_TYPE, 'Cache-Control', 'no-store'])
    else respond(response, 503, '{"status":"unavailable"}', [...JSON_TYPE, 'Cache-Control', 'no-store'])
  }

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

/** Resolves when the server listens. Throws `SettingsFault` where a setting is the reason that it cannot. */
export const listen = async (server: Server, { host, port }: RelayConfig['listen']): Promise<AddressInfo> => {
  try {
    server.listen(port, host)
    await once(server, 'listening')
    return server.address() as AddressInfo
  } catch (error) {
    throw listenFault(error, { host: 'RELAY_HOST', port: 'RELAY_PORT' })
  }
}
