import type { CompressionOptions } from '../core/options.js'
import { compressionOptions } from './client-options.js'
import type { RelayConfigFile } from './schema.js'

export interface UnidirectionalWebSocketOptions {
  readonly enabled: boolean
  readonly maxMessageBytes: number
  /** Null if it is off. */
  readonly compression: CompressionOptions | null
  /** Whether a disconnect is also announced by a push, before the close frame. */
  readonly hasDisconnectPush: boolean
}

export interface UnidirectionalOptions {
  readonly sse: { readonly enabled: boolean; readonly maxBodyBytes: number }
  readonly httpStream: { readonly enabled: boolean; readonly maxBodyBytes: number }
  readonly webSocket: UnidirectionalWebSocketOptions
}

/** Routes that can be switched off. */
export interface EnabledEndpoints {
  readonly sse: boolean
  readonly httpStream: boolean
  readonly metrics: boolean
  readonly health: boolean
}

const DEFAULT_CONNECT_REQUEST_BYTES = 64 * 1024

/** Transports of clients that only receive. */
export const unidirectionalOptions = ({
  uni_sse: sse = {},
  uni_http_stream: httpStream = {},
  uni_websocket: webSocket = {}
}: RelayConfigFile): UnidirectionalOptions =>
  Object.freeze({
    sse: {
      enabled: sse.enabled ?? false,
      maxBodyBytes: sse.max_request_body_size ?? DEFAULT_CONNECT_REQUEST_BYTES
    },
    httpStream: {
      enabled: httpStream.enabled ?? false,
      maxBodyBytes: httpStream.max_request_body_size ?? DEFAULT_CONNECT_REQUEST_BYTES
    },
    webSocket: {
      enabled: webSocket.enabled ?? false,
      maxMessageBytes: webSocket.message_size_limit ?? DEFAULT_CONNECT_REQUEST_BYTES,
      compression: compressionOptions(webSocket),
      hasDisconnectPush: !webSocket.disable_disconnect_push
    }
  })

export const enabledEndpoints = ({
  sse = {},
  http_stream: httpStream = {},
  prometheus = {},
  health = {}
}: RelayConfigFile): EnabledEndpoints =>
  Object.freeze({
    sse: sse.enabled ?? true,
    httpStream: httpStream.enabled ?? true,
    metrics: prometheus.enabled ?? true,
    health: health.enabled ?? true
  })
