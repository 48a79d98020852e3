import type { Disconnect } from '../codes.js'
import type { ClientHeaders } from '../event-proxies.js'
import type { Codec, Encoded, MessageParts } from './codec.js'

/**
 * Wraps messages of one codec in the framing of a transport. Transports with identical bytes share one instance: subscribers
 * are grouped by it, and a publication is encoded once per group.
 */
export interface Framing {
  /** Different for framings with different bytes. */
  readonly name: string
  readonly codec: Codec
  frame(message: Encoded): Buffer
  /** Adds the framing without copying the message. Absent if the framing changes the message. */
  frameParts?(message: MessageParts): MessageParts
}

/** Destination of encoded bytes; a TCP socket is one. */
export interface ByteStream {
  /**
   * Writes complete frames, or all parts of a frame in one go: the transport may send frames of its own afterwards. Must not
   * throw; a closed connection is reported to the client instead.
   */
  write(bytes: Buffer): unknown
  /** Buffers writes; `uncork` sends them, with one system call if possible. */
  cork(): void
  uncork(): void
  /** Bytes that were written but not yet accepted by the network. */
  readonly writableLength: number
}

export type TransportName = 'websocket' | 'http_stream' | 'sse' | UnidirectionalName
export type UnidirectionalName = 'uni_websocket' | 'uni_http_stream' | 'uni_sse'

/** The outgoing side of a connection, as the outbox sees it. */
export interface Transport {
  readonly framing: Framing
  readonly name: TransportName
  readonly stream: ByteStream
  /** Calls back once, after everything written so far was accepted by the network. */
  onceDrained(callback: () => void): void
}

/** A client connection, implemented by each transport. */
export interface ClientTransport extends Transport {
  /** Network address of the client. */
  readonly address: string
  /** Headers of the request that opened the connection, for proxies and for its user; null for none. */
  readonly requestHeaders: ClientHeaders | null
  /** An encoded ping, shared by all clients of the transport. */
  readonly pingBytes: Buffer
  /** The transport has its own pings (WebSocket ping frames), so the protocol's pings are off. */
  readonly hasOwnPings: boolean
  /** The client cannot send over this transport; its commands arrive in separate requests that name a session. */
  readonly isEmulated: boolean
  /** The client only receives: it sends a connect request and no commands. */
  readonly isUnidirectional: boolean
  /** Stops reading from the client until `resume`, if the transport supports it. */
  pause(): void
  resume(): void
  /** Closes the connection and reports the reason if possible. Frames written before are still sent. */
  close(reason: Disconnect): void
  /** Cuts the connection without a message. */
  drop(): void
}
