/** A client's text frame, masked with zeros: legal, and nothing has to be changed. */
export const clientFrame = (text: string): Buffer => {
  const length = Buffer.byteLength(text)
  const head = length < 126 ? 2 : 4
  const frame = Buffer.alloc(head + 4 + length)
  frame[0] = 0x81
  frame[1] = 0x80 | (head === 2 ? length : 126)
  if (head === 4) frame.writeUInt16BE(length, 2)
  frame.write(text, head + 4)
  return frame
}

/** Bytes of a server's frame head: its length is in the second byte, or in those behind it. */
const headLength = (second: number): number => ((second & 127) === 126 ? 4 : (second & 127) === 127 ? 10 : 2)

/**
 * Finds frames in what a socket receives. Payloads are not looked at and not copied, unless they are short or somebody
 * wants to read them: this has to cost less than making them.
 */
export class FrameReader {
  readonly #onFrame: (length: number, payload: Buffer | null) => void
  readonly #head = Buffer.alloc(10)
  #headBytes = 0
  /** Of the payload, still to come. */
  #left = 0
  #length = 0
  #kept: Buffer[] | null = null
  /** Payloads up to this length are handed over. */
  keepUpTo: number

  constructor(keepUpTo: number, onFrame: (length: number, payload: Buffer | null) => void) {
    this.keepUpTo = keepUpTo
    this.#onFrame = onFrame
  }

  read(bytes: Buffer, end: number): void {
    let place = 0
    while (place < end) {
      if (this.#left > 0) {
        const take = Math.min(this.#left, end - place)
        this.#kept?.push(Buffer.from(bytes.subarray(place, place + take)))
        this.#left -= take
        place += take
        if (this.#left === 0) this.#done()
        continue
      }
      this.#head[this.#headBytes] = bytes[place] as number
      this.#headBytes += 1
      place += 1
      if (this.#headBytes >= 2 && this.#headBytes === headLength(this.#head[1] as number)) this.#begin()
    }
  }

  #begin(): void {
    const head = this.#head
    const length =
      this.#headBytes === 2 ? (head[1] as number) : this.#headBytes === 4 ? head.readUInt16BE(2) : head.readUInt32BE(6)
    if ((head[0] as number) === CLOSE_FRAME) throw new Error('a server closed a connection')
    this.#length = length
    this.#left = length
    this.#headBytes = 0
    this.#kept = length <= this.keepUpTo ? [] : null
    if (length === 0) this.#done()
  }

  #done(): void {
    const payload = this.#kept === null ? null : Buffer.concat(this.#kept)
    this.#kept = null
    this.#onFrame(this.#length, payload)
  }
}

const CLOSE_FRAME = 0x88
