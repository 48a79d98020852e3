import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { hasTooManyHeaderLines, keepAllHeaderLines } from '../../shared/header-lines.js'
import type { RelayConfig } from '../config.js'
import type { Log } from '../core/context.js'
import type { Relay } from '../core/relay.js'
import { ApiCalls, type ApiWatch } from './api-calls.js'
import { ConnectionDrain } from './connection-drain.js'
import { failRequest, reportFailure } from './contain.js'
import type { Door } from './door.js'
import { emulation } from './emulation.js'
import { answer } from './http-answer.js'
import { type HttpRoute, httpStream, serverSentEvents } from './http-stream.js'
import { publishApi } from './publish-api.js'
import type { Rejections } from './rejections.js'
import type { Troubles } from './troubles.js'
import { onUpgrade, pathOf, UPGRADE_OPTIONS, WEBSOCKET_PATH } from './upgrade.js'
import { emptyAnswer, refuseUpgrade, webSocketUpgrade } from './websocket.js'

export interface ServerParts {
  readonly relay: Relay
  readonly door: Door
  readonly config: () => RelayConfig
  readonly log: Log
  readonly watch: ApiWatch
  readonly troubles: Troubles
  readonly rejections: Rejections
  /** All of `/admin`, which has a table of paths of its own. */
  readonly admin: (calls: ApiCalls) => HttpRoute
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
  const calls = new ApiCalls(relay, watch, log)
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
      answer(response, 426, '', ['Upgrade', 'websocket'])
    }
  }

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    if (hasTooManyHeaderLines(request)) {
      request.resume()
      answer(response, 431, '', ['Connection', 'close'])
      return
    }
    const path = pathOf(request)
    if (path === '/api') api(request, response, '')
    else if (path.startsWith('/api/')) api(request, response, path.slice('/api/'.length))
    else if (path === '/admin' || path.startsWith('/admin/')) admin(request, response)
    else if (Object.hasOwn(paths, path)) paths[path]?.(request, response)
    else {
      request.resume()
      answer(response, 404)
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
