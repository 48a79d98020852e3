import type { Framing } from '../core/transport.js'

const FINAL_TEXT_FRAME = 0x81
const LENGTH_16 = 126
const LENGTH_64 = 127

/** A complete unmasked WebSocket text frame in one buffer, which can be written to any number of sockets. */
export const webSocketFraming: Framing = {
  frame: (message) => {
    const length = Buffer.byteLength(message)
    const header = length < LENGTH_16 ? 2 : length < 0x10000 ? 4 : 10
    const frame = Buffer.allocUnsafe(header + length)
    frame[0] = FINAL_TEXT_FRAME
    if (header === 2) frame[1] = length
    else if (header === 4) {
      frame[1] = LENGTH_16
      frame.writeUInt16BE(length, 2)
    } else {
      frame[1] = LENGTH_64
      frame.writeUInt32BE(0, 2)
      frame.writeUInt32BE(length, 6)
    }
    frame.write(message, header, 'utf8')
    return frame
  }
}

/** One line per message, for HTTP streaming. */
export const lineFraming: Framing = { frame: (message) => Buffer.from(`${message}\n`) }

export const serverSentEventFraming: Framing = {
  frame: (message) => Buffer.from(`data: ${message.replaceAll('\n', '\ndata: ')}\n\n`)
}
