import { randomBytes } from 'node:crypto'

// Frames of WebSockets (RFC 6455, section 5).

const CONTINUATION = 0x0
const CLOSE = 0x8
const PING = 0x9
const PONG = 0xa
const DATA_OPCODES: ReadonlySet<number> = new Set([CONTINUATION, 0x1, 0x2])
const CONTROL_OPCODES: ReadonlySet<number> = new Set([CLOSE, PING, PONG])

const PROTOCOL_ERROR = 1002
const CODE_BYTES = 2
const TOO_LARGE = 1009

const NO_BYTES = Buffer.alloc(0)
const MASK_BYTES = 4
const MAX_CONTROL_BYTES = 125

/** A frame that must not be passed on. */
export class FrameError extends Error {
  override readonly name = 'FrameError'
  /** The close code for it. */
  readonly code: number

  constructor(code: number) {
    super(`invalid WebSocket frame (${code})`)
    this.code = code
  }
}

export interface FrameRules {
  /** Whether frames must be masked: those of clients are, those of servers are not. */
  readonly isMasked: boolean
  /** Whether extensions were negotiated, which give a meaning to reserved bits. */
  readonly hasExtensions: boolean
  /** The largest message, as it is sent. */
  readonly maxMessageBytes: number
}

/**
 * Checks the headers of the frames in a stream of bytes. Payloads are neither copied nor decoded: they pass as they are, which
 * costs a fraction of receiving and sending every message.
 */
export class FrameScanner {
  readonly #rules: FrameRules
  /** The beginning of a header that is not complete yet. */
  #header: Buffer = NO_BYTES
  /** Bytes of the present frame that are still to come. */
  #remaining = 0
  /** The size of the present message so far; null between messages. */
  #messageBytes: number | null = null
  #hasClosed = false

  constructor(rules: FrameRules) {
    this.#rules = rules
  }

  /** Whether a frame may be inserted here. */
  get isBetweenFrames(): boolean {
    return this.#remaining === 0
  }

  /** Whether a close frame has passed. Nothing may follow it. */
  get hasClosed(): boolean {
    return this.#hasClosed
  }

  /** The bytes that may be passed on, without the beginning of an incomplete header. Throws a `FrameError`. */
  next(chunk: Buffer): Buffer {
    const bytes = this.#header.length === 0 ? chunk : Buffer.concat([this.#header, chunk])
    this.#header = NO_BYTES
    let position = 0
    while (position < bytes.length) {
      if (this.#remaining > 0) {
        const count = Math.min(this.#remaining, bytes.length - position)
        this.#remaining -= count
        position += count
        continue
      }
      if (this.#hasClosed) throw new FrameError(PROTOCOL_ERROR)
      const headerBytes = this.#readHeader(bytes, position)
      if (headerBytes === 0) {
        // A copy: the rest of the chunk must not stay in memory.
        this.#header = Buffer.from(bytes.subarray(position))
        return bytes.subarray(0, position)
      }
      position += headerBytes
    }
    return bytes
  }

  /** Returns the size of the header, or 0 if it is not complete. */
  #readHeader(bytes: Buffer, start: number): number {
    const [first, second] = [bytes[start], bytes[start + 1]]
    if (first === undefined || second === undefined) return 0
    const { isMasked, hasExtensions } = this.#rules
    const opcode = first & 0x0f
    const isFinal = first >= 0x80
    const shortLength = second & 0x7f
    if ((first & 0x70) !== 0 && !hasExtensions) throw new FrameError(PROTOCOL_ERROR)
    if (second >= 0x80 !== isMasked) throw new FrameError(PROTOCOL_ERROR)
    if (CONTROL_OPCODES.has(opcode)) {
      if (!isFinal || shortLength > MAX_CONTROL_BYTES) throw new FrameError(PROTOCOL_ERROR)
    } else if (!DATA_OPCODES.has(opcode) || (opcode === CONTINUATION) !== (this.#messageBytes !== null))
      throw new FrameError(PROTOCOL_ERROR)

    const lengthBytes = shortLength === 126 ? 2 : shortLength === 127 ? 8 : 0
    const headerBytes = 2 + lengthBytes + (isMasked ? MASK_BYTES : 0)
    // The code of a close frame is checked with its header.
    const codeBytes = opcode === CLOSE && shortLength > 0 ? CODE_BYTES : 0
    if (codeBytes > shortLength) throw new FrameError(PROTOCOL_ERROR)
    if (bytes.length - start < headerBytes + codeBytes) return 0
    if (codeBytes > 0 && !isCloseCode(codeOf(bytes, start + headerBytes, isMasked)))
      throw new FrameError(PROTOCOL_ERROR)
    const length = lengthBytes === 0 ? shortLength : longLength(bytes, start + 2, lengthBytes)
    if (length < minimalLength(lengthBytes)) throw new FrameError(PROTOCOL_ERROR)
    if (CONTROL_OPCODES.has(opcode)) this.#hasClosed = opcode === CLOSE
    else this.#addToMessage(length, isFinal)
    this.#remaining = length
    return headerBytes
  }

  #addToMessage(length: number, isFinal: boolean): void {
    const total = (this.#messageBytes ?? 0) + length
    if (total > this.#rules.maxMessageBytes) throw new FrameError(TOO_LARGE)
    this.#messageBytes = isFinal ? null : total
  }
}

/** A length above 2^53 becomes a number that is too large for any limit. */
const longLength = (bytes: Buffer, start: number, size: 2 | 8): number =>
  size === 2 ? bytes.readUInt16BE(start) : Number(bytes.readBigUInt64BE(start))

/** The smallest length that needs a field of so many bytes: a length has one form only. */
const minimalLength = (lengthBytes: 0 | 2 | 8): number => (lengthBytes === 0 ? 0 : lengthBytes === 2 ? 126 : 65_536)

/** The code of a close frame whose payload begins at `start`, behind its mask. */
const codeOf = (bytes: Buffer, start: number, isMasked: boolean): number =>
  bytes.readUInt16BE(start) ^ (isMasked ? bytes.readUInt16BE(start - MASK_BYTES) : 0)

/** Codes that a frame may carry. 1004, 1005, 1006 and 1015 stand for connections without such a frame; others are reserved. */
const isCloseCode = (code: number): boolean =>
  (code >= 3000 && code <= 4999) || (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006))

/** A control frame of the gateway itself. A server's payload is sent as it is, a client's with a random mask. */
const controlFrame = (opcode: number, payload: Buffer, isMasked: boolean): Buffer => {
  if (!isMasked) return Buffer.concat([Buffer.from([0x80 | opcode, payload.length]), payload])
  const mask = randomBytes(MASK_BYTES)
  const masked = payload.map((byte, index) => byte ^ (mask[index % MASK_BYTES] ?? 0))
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | payload.length]), mask, masked])
}

export const pingFrame = (isMasked: boolean): Buffer => controlFrame(PING, NO_BYTES, isMasked)

/** `reason` is ASCII with at most 123 characters. */
export const closeFrame = (code: number, reason: string, isMasked: boolean): Buffer => {
  const payload = Buffer.alloc(2 + reason.length)
  payload.writeUInt16BE(code)
  payload.write(reason, 2, 'latin1')
  return controlFrame(CLOSE, payload, isMasked)
}
