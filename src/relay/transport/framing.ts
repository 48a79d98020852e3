import { constants, deflateRawSync } from 'node:zlib'
import { type Codec, type Encoded, type MessageParts, payloadBytes } from '../core/codec/codec.js'
import { jsonCodec, LINE_END, unidirectionalJsonCodec } from '../core/codec/json-codec.js'
import { encodedBytes } from '../core/codec/message-parts.js'
import type { Framing } from '../core/codec/transport.js'
import type { CompressionOptions } from '../core/options.js'
import { protobufCodec } from '../protobuf/protobuf-codec.js'

/** First byte of an unfragmented frame. */
const TEXT_FRAME = 0x81
const BINARY_FRAME = 0x82
const LENGTH_16 = 126
const LENGTH_64 = 127

const headerBytes = (length: number): number => (length < LENGTH_16 ? 2 : length < 0x10000 ? 4 : 10)

/** Writes the header of an unmasked frame to the beginning of `frame`. */
const writeHeader = (frame: Buffer, firstByte: number, length: number): void => {
  const header = headerBytes(length)
  frame[0] = firstByte
  if (header === 2) frame[1] = length
  else if (header === 4) {
    frame[1] = LENGTH_16
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = LENGTH_64
    frame.writeUInt32BE(0, 2)
    frame.writeUInt32BE(length, 6)
  }
}

/** A complete unmasked WebSocket frame in one buffer, which can be written to any number of sockets. */
const webSocketFrame = (message: Encoded, firstByte: number): Buffer => {
  const length = payloadBytes(message)
  const header = headerBytes(length)
  const frame = Buffer.allocUnsafe(header + length)
  writeHeader(frame, firstByte, length)
  if (typeof message === 'string') frame.write(message, header, 'utf8')
  else frame.set(message, header)
  return frame
}

const webSocketFrameParts = (message: MessageParts, firstByte: number): MessageParts => {
  const length = encodedBytes(message)
  const header = Buffer.allocUnsafe(headerBytes(length))
  writeHeader(header, firstByte, length)
  return [header, ...message]
}

const webSocketFraming = (name: string, codec: Codec, firstByte: number): Framing => ({
  name,
  codec,
  frame: (message) => webSocketFrame(message, firstByte),
  frameParts: (message) => webSocketFrameParts(message, firstByte)
})

const webSocketTextFraming = webSocketFraming('websocket json', jsonCodec, TEXT_FRAME)
export const webSocketBinaryFraming = webSocketFraming('websocket protobuf', protobufCodec, BINARY_FRAME)
const unidirectionalWebSocketFraming = webSocketFraming('uni_websocket', unidirectionalJsonCodec, TEXT_FRAME)

/** RSV1: the message is compressed (RFC 7692). */
const COMPRESSED = 0x40
/** The end of a flushed deflate stream, which is not sent. */
const TAIL_BYTES = 4

/**
 * Frames for clients that accept compression without context takeover: each message is compressed alone, so that all
 * subscribers of a group receive the same bytes and a connection needs no compressor of its own.
 */
const compressedFraming = (
  { name, codec }: Pick<Framing, 'name' | 'codec'>,
  firstByte: number,
  { minBytes, level }: CompressionOptions
): Framing => ({
  name: `${name} deflate ${level} ${minBytes}`,
  codec,
  frame: (message) => {
    if (payloadBytes(message) < minBytes) return webSocketFrame(message, firstByte)
    const deflated = deflateRawSync(message, { level, finishFlush: constants.Z_SYNC_FLUSH })
    return webSocketFrame(deflated.subarray(0, -TAIL_BYTES), firstByte | COMPRESSED)
  }
})

export interface WebSocketFramings {
  readonly text: Framing
  readonly binary: Framing
  readonly unidirectional: Framing
}

export const plainFramings: WebSocketFramings = {
  text: webSocketTextFraming,
  binary: webSocketBinaryFraming,
  unidirectional: unidirectionalWebSocketFraming
}

export const compressedFramings = (options: CompressionOptions): WebSocketFramings => ({
  text: compressedFraming(webSocketTextFraming, TEXT_FRAME, options),
  binary: compressedFraming(webSocketBinaryFraming, BINARY_FRAME, options),
  unidirectional: compressedFraming(unidirectionalWebSocketFraming, TEXT_FRAME, options)
})

/** One line per message, for HTTP streaming. */
const lines = (name: string, codec: Codec): Framing => ({
  name,
  codec,
  frame: (message) => Buffer.from(`${message}\n`),
  frameParts: (message) => [...message, LINE_END]
})

export const lineFraming = lines('http_stream json', jsonCodec)
export const unidirectionalLineFraming = lines('uni_http_stream', unidirectionalJsonCodec)

/** Messages follow each other: each has its length in front. */
export const byteStreamFraming: Framing = {
  name: 'http_stream protobuf',
  codec: protobufCodec,
  frame: (message) => Buffer.from(message),
  frameParts: (message) => message
}

const eventFraming = (name: string, codec: Codec): Framing => ({
  name,
  codec,
  frame: (message) => Buffer.from(`data: ${message.toString().replaceAll('\n', '\ndata: ')}\n\n`)
})

export const serverSentEventFraming = eventFraming('sse', jsonCodec)
export const unidirectionalEventFraming = eventFraming('uni_sse', unidirectionalJsonCodec)
