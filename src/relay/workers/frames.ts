// A frame is its length (4 bytes), its kind (1 byte), the id of its request (4 bytes) and its fields.

const HEADER_BYTES = 9
const LENGTH_BYTES = 4
const INITIAL_BYTES = 64 * 1024
/** A larger buffer is released after use. */
const MAX_REUSED_BYTES = 4 * 1024 * 1024

/** Appends frames to one reused buffer, so that all frames of an event loop turn leave in one write. */
export class FrameWriter {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #start = 0
  #end = 0

  get length(): number {
    return this.#end
  }

  begin(kind: number, id: number): this {
    this.#reserve(HEADER_BYTES)
    this.#start = this.#end
    this.#bytes[this.#start + LENGTH_BYTES] = kind
    this.#bytes.writeUInt32LE(id, this.#start + LENGTH_BYTES + 1)
    this.#end += HEADER_BYTES
    return this
  }

  finish(): void {
    this.#bytes.writeUInt32LE(this.#end - this.#start - LENGTH_BYTES, this.#start)
  }

  byte(value: number): this {
    this.#reserve(1)
    this.#bytes[this.#end++] = value
    return this
  }

  number(value: number): this {
    this.#reserve(8)
    this.#end = this.#bytes.writeDoubleLE(value, this.#end)
    return this
  }

  text(value: string): this {
    // UTF-8 needs at most three bytes for each UTF-16 unit.
    this.#reserve(LENGTH_BYTES + value.length * 3)
    const length = this.#bytes.write(value, this.#end + LENGTH_BYTES)
    this.#bytes.writeUInt32LE(length, this.#end)
    this.#end += LENGTH_BYTES + length
    return this
  }

  textOrNull(value: string | null): this {
    return value === null ? this.byte(0) : this.byte(1).text(value)
  }

  /** Text or bytes. */
  payload(value: string | Buffer): this {
    if (typeof value === 'string') return this.byte(0).text(value)
    this.byte(1).#reserve(LENGTH_BYTES + value.length)
    this.#bytes.writeUInt32LE(value.length, this.#end)
    value.copy(this.#bytes, this.#end + LENGTH_BYTES)
    this.#end += LENGTH_BYTES + value.length
    return this
  }

  /** Appends a complete frame of another writer. */
  append(frame: Buffer): void {
    this.#reserve(frame.length)
    frame.copy(this.#bytes, this.#end)
    this.#end += frame.length
  }

  /** Returns all frames and empties the buffer. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.#end)
    this.#bytes.copy(taken, 0, 0, this.#end)
    this.#end = 0
    if (this.#bytes.length > MAX_REUSED_BYTES) this.#bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
    return taken
  }

  #reserve(more: number): void {
    const needed = this.#end + more
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#end)
    this.#bytes = larger
  }
}

/** Reads the fields of one frame in the order in which they were written. Throws `RangeError` after the last one. */
export class FrameReader {
  readonly #bytes: Buffer
  readonly #end: number
  #index: number

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes
    this.#index = start
    this.#end = end
  }

  byte(): number {
    return this.#bytes.readUInt8(this.#advance(1))
  }

  uint32(): number {
    return this.#bytes.readUInt32LE(this.#advance(4))
  }

  number(): number {
    return this.#bytes.readDoubleLE(this.#advance(8))
  }

  text(): string {
    const length = this.uint32()
    const start = this.#advance(length)
    return this.#bytes.toString('utf8', start, start + length)
  }

  textOrNull(): string | null {
    return this.byte() === 0 ? null : this.text()
  }

  payload(): string | Buffer {
    if (this.byte() === 0) return this.text()
    const length = this.uint32()
    const start = this.#advance(length)
    // Copied, because the buffer contains other frames too.
    return Buffer.from(this.#bytes.subarray(start, start + length))
  }

  #advance(length: number): number {
    const start = this.#index
    if (start + length > this.#end) throw new RangeError('truncated frame')
    this.#index = start + length
    return start
  }
}

/** Larger than any request that a relay accepts. */
const MAX_FRAME_BYTES = 1024 * 1024 * 1024

/** Splits a byte stream into frames. */
export class FrameSplitter {
  readonly #onFrame: (frame: FrameReader) => void
  #chunks: Buffer[] = []
  #length = 0
  /** Bytes needed for the next complete frame. */
  #needed = LENGTH_BYTES

  constructor(onFrame: (frame: FrameReader) => void) {
    this.#onFrame = onFrame
  }

  receive(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    // A long frame is concatenated once, when it is complete.
    if (this.#length < this.#needed) return
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#length)
    const rest = bytes.subarray(this.#split(bytes))
    this.#chunks = rest.length === 0 ? [] : [rest]
    this.#length = rest.length
  }

  #split(bytes: Buffer): number {
    let index = 0
    while (bytes.length - index >= LENGTH_BYTES) {
      const start = index + LENGTH_BYTES
      const length = bytes.readUInt32LE(index)
      if (length > MAX_FRAME_BYTES) throw new RangeError('frame too long')
      if (start + length > bytes.length) {
        this.#needed = LENGTH_BYTES + length
        return index
      }
      this.#onFrame(new FrameReader(bytes, start, start + length))
      index = start + length
    }
    this.#needed = LENGTH_BYTES
    return index
  }
}
