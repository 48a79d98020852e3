/** Reads the fields of one frame in the order in which they were written. Throws where there are not so many. */
export class FrameReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  byte(): number {
    return this.#bytes[this.#take(1)] as number
  }

  whole(): number {
    return this.#bytes.readUInt32LE(this.#take(4))
  }

  number(): number {
    return this.#bytes.readDoubleLE(this.#take(8))
  }

  text(): string {
    const length = this.whole()
    const start = this.#take(length)
    return this.#bytes.toString('utf8', start, start + length)
  }

  textOrNull(): string | null {
    return this.byte() === 0 ? null : this.text()
  }

  #take(length: number): number {
    const start = this.#at
    if (start + length > this.#end) throw new RangeError('a frame ends too early')
    this.#at = start + length
    return start
  }
}
