/** Turns one or more JSON objects, joined by newlines, into the bytes of one transport. */
export type Framing = (payload: string) => Buffer

const FINAL_TEXT_FRAME = 0x81
const LENGTH_16 = 126
const LENGTH_64 = 127

/** A whole WebSocket text frame, header and payload in one buffer, so that it can be written to any number of sockets. */
export const webSocketText: Framing = (payload) => {
  const length = Buffer.byteLength(payload)
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
  frame.write(payload, header, 'utf8')
  return frame
}

export const streamLine: Framing = (payload) => Buffer.from(`${payload}\n`)

export const serverSentEvent: Framing = (payload) => Buffer.from(`data: ${payload.replaceAll('\n', '\ndata: ')}\n\n`)
