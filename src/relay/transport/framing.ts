import { type Codec, payloadBytes } from '../core/codec.js'
import { jsonCodec, unidirectionalJsonCodec } from '../core/json-codec.js'
import type { Framing } from '../core/transport.js'
import { protobufCodec } from '../protobuf/protobuf-codec.js'

/** First byte of an unfragmented frame. */
const TEXT_FRAME = 0x81
const BINARY_FRAME = 0x82
const LENGTH_16 = 126
const LENGTH_64 = 127

/** A complete unmasked WebSocket frame in one buffer, which can be written to any number of sockets. */
const webSocketFraming = (codec: Codec, firstByte: number): Framing => ({
  codec,
  frame: (message) => {
    const length = payloadBytes(message)
    const header = length < LENGTH_16 ? 2 : length < 0x10000 ? 4 : 10
    const frame = Buffer.allocUnsafe(header + length)
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
    if (typeof message === 'string') frame.write(message, header, 'utf8')
    else frame.set(message, header)
    return frame
  }
})

export const webSocketTextFraming = webSocketFraming(jsonCodec, TEXT_FRAME)
export const webSocketBinaryFraming = webSocketFraming(protobufCodec, BINARY_FRAME)

export const unidirectionalWebSocketFraming = webSocketFraming(unidirectionalJsonCodec, TEXT_FRAME)

/** One line per message, for HTTP streaming. */
const lines = (codec: Codec): Framing => ({ codec, frame: (message) => Buffer.from(`${message}\n`) })

export const lineFraming = lines(jsonCodec)
export const unidirectionalLineFraming = lines(unidirectionalJsonCodec)

/** Messages follow each other: each has its length in front. */
export const byteStreamFraming: Framing = { codec: protobufCodec, frame: (message) => Buffer.from(message) }

const serverSentEvents = (codec: Codec): Framing => ({
  codec,
  frame: (message) => Buffer.from(`data: ${message.toString().replaceAll('\n', '\ndata: ')}\n\n`)
})

export const serverSentEventFraming = serverSentEvents(jsonCodec)
export const unidirectionalEventFraming = serverSentEvents(unidirectionalJsonCodec)
