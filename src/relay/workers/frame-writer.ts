/** Length, kind and number of a frame come before its fields. */
export const HEAD_BYTES = 9
const LENGTH_BYTES = 4
const FIRST_BYTES = 64 * 1024
/** A burst must not be paid for in memory for ever. */
const KEPT_BYTES = 4 * 1024 * 1024

/**
 * Writes frames one behind the other into one buffer, which is used again and again: what one turn of the event loop
 * says leaves in one write.
 */
export class FrameWriter {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #start = 0
  #end = 0

  get length(): number {
    return this.#end
  }

  begin(kind: number, id: number): this {
    this.#reserve(HEAD_BYTES)
    this.#start = this.#end
    this.#bytes[this.#start + LENGTH_BYTES] = kind
    this.#bytes.writeUInt32LE(id, this.#start + LENGTH_BYTES + 1)
    this.#end += HEAD_BYTES
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
    // Three bytes at most for each of JavaScript's characters.
    this.#reserve(LENGTH_BYTES + value.length * 3)
    const length = this.#bytes.write(value, this.#end + LENGTH_BYTES)
    this.#bytes.writeUInt32LE(length, this.#end)
    this.#end += LENGTH_BYTES + length
    return this
  }

  textOrNull(value: string | null): this {
    return value === null ? this.byte(0) : this.byte(1).text(value)
  }

  /** A frame that was written elsewhere. */
  append(frame: Buffer): void {
    this.#reserve(frame.length)
    frame.copy(this.#bytes, this.#end)
    this.#end += frame.length
  }

  /** All that was written, and from here on nothing. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.#end)
    this.#bytes.copy(taken, 0, 0, this.#end)
    this.#end = 0
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
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
