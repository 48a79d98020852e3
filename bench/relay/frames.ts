/** A client's frame, with one byte per character. The mask is zero, so that the payload stays as it is. */
export const clientFrame = (text: string, isBinary: boolean): Buffer => {
  const { length } = text
  const head = length < 126 ? 2 : 4
  const frame = Buffer.alloc(head + 4 + length)
  frame[0] = isBinary ? 0x82 : 0x81
  frame[1] = 0x80 | (head === 2 ? length : 126)
  if (head === 4) frame.writeUInt16BE(length, 2)
  frame.write(text, head + 4, 'latin1')
  return frame
}

/** A server's frame of less than 126 bytes. */
export const serverFrame = (text: string, isBinary: boolean): Buffer =>
  Buffer.from(`${isBinary ? '\x82' : '\x81'}${String.fromCharCode(text.length)}${text}`, 'latin1')

/** Length of a server's frame header, from its second byte. */
const headLength = (second: number): number => ((second & 127) === 126 ? 4 : (second & 127) === 127 ? 10 : 2)

/**
 * Finds frames in the bytes of a socket. Copies only short payloads, because reading must cost less CPU time than the
 * server's sending.
 */
export class FrameReader {
  readonly #onFrame: (length: number, payload: Buffer | null) => void
  readonly #head = Buffer.alloc(10)
  #headBytes = 0
  /** Remaining bytes of the payload. */
  #left = 0
  #length = 0
  #payload: Buffer[] | null = null
  /** Payloads up to this length are passed to the callback. */
  maxPayload: number

  constructor(maxPayload: number, onFrame: (length: number, payload: Buffer | null) => void) {
    this.maxPayload = maxPayload
    this.#onFrame = onFrame
  }

  read(bytes: Buffer, end: number): void {
    let index = 0
    while (index < end) {
      if (this.#left > 0) {
        const take = Math.min(this.#left, end - index)
        this.#payload?.push(Buffer.from(bytes.subarray(index, index + take)))
        this.#left -= take
        index += take
        if (this.#left === 0) this.#done()
        continue
      }
      this.#head[this.#headBytes] = bytes.readUInt8(index)
      this.#headBytes += 1
      index += 1
      if (this.#headBytes >= 2 && this.#headBytes === headLength(this.#head.readUInt8(1))) this.#begin()
    }
  }

  #begin(): void {
    const head = this.#head
    const length =
      this.#headBytes === 2 ? head.readUInt8(1) : this.#headBytes === 4 ? head.readUInt16BE(2) : head.readUInt32BE(6)
    if (head[0] === CLOSE_FRAME) throw new Error('a server closed a connection')
    this.#length = length
    this.#left = length
    this.#headBytes = 0
    this.#payload = length <= this.maxPayload ? [] : null
    if (length === 0) this.#done()
  }

  #done(): void {
    const payload = this.#payload === null ? null : Buffer.concat(this.#payload)
    this.#payload = null
    this.#onFrame(this.#length, payload)
  }
}

const CLOSE_FRAME = 0x88
