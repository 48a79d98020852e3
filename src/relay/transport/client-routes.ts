import type { RelayConfig } from '../config/config.js'
import type { Relay } from '../core/relay.js'
import type { ClientAdmission } from './admission.js'
import { EmulationLimit } from './emulation-limit.js'
import {
  emulation,
  httpStream,
  serverSentEvents,
  unidirectionalEvents,
  unidirectionalHttpStream
} from './http-stream.js'
import type { Rejections } from './rejections.js'
import { type HttpHandler, type RequestErrors, respond } from './respond.js'
import { ifEnabled, type ServerDependencies } from './server.js'
import { rejectUpgrade, unidirectionalWebSocketUpgrade, webSocketUpgrade } from './websocket.js'

export interface ClientRoutesDependencies {
  readonly relay: Relay
  readonly admission: ClientAdmission
  readonly rejections: Rejections
  readonly errors: RequestErrors
  /** The current configuration. */
  readonly config: () => Pick<RelayConfig, 'unidirectional' | 'endpoints'>
}

const WEBSOCKET_PATH = '/connection/websocket'
const UNIDIRECTIONAL_WEBSOCKET_PATH = '/connection/uni_websocket'

/** The routes of all client transports. */
export const clientRoutes = ({
  relay,
  admission,
  rejections,
  errors,
  config
}: ClientRoutesDependencies): Pick<ServerDependencies, 'routes' | 'upgrades'> => {
  const upgradeRequired: HttpHandler = (request, response) => {
    request.resume()
    rejections.missingUpgrade(admission.addressOf(request))
    respond(response, 426, '', ['Upgrade', 'websocket'])
  }
  const limit = new EmulationLimit(relay.clocks.monotonicMs, (text, who) => rejections.limit(text, who))
  const unidirectional = (): RelayConfig['unidirectional'] => config().unidirectional
  const hasSse = (): boolean => config().endpoints.sse
  const hasHttpStream = (): boolean => config().endpoints.httpStream
  const eventBodyBytes = (): number => unidirectional().sse.maxBodyBytes
  const streamBodyBytes = (): number => unidirectional().httpStream.maxBodyBytes
  const unidirectionalUpgrade = unidirectionalWebSocketUpgrade(relay, admission, () => unidirectional().webSocket)
  return {
    routes: {
      '/connection/http_stream': ifEnabled(hasHttpStream, httpStream(relay, admission, errors)),
      '/connection/sse': ifEnabled(hasSse, serverSentEvents(relay, admission, errors)),
      '/emulation': ifEnabled(() => hasSse() || hasHttpStream(), emulation(relay, admission, limit, errors)),
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
    },
    upgrades: {
      [WEBSOCKET_PATH]: webSocketUpgrade(relay, admission),
      [UNIDIRECTIONAL_WEBSOCKET_PATH]: (request, socket, head) =>
        unidirectional().webSocket.enabled ? unidirectionalUpgrade(request, socket, head) : rejectUpgrade(socket, 404)
    }
  }
}
