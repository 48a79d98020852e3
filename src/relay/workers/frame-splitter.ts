import { FrameReader } from './frame-reader.js'

const LENGTH_BYTES = 4
/** Larger than anything that a relay takes in. */
const MAX_FRAME_BYTES = 1024 * 1024 * 1024

/** Finds the frames in a stream of bytes, however it is cut into pieces. */
export class FrameSplitter {
  readonly #frame: (frame: FrameReader) => void
  #pieces: Buffer[] = []
  #length = 0
  /** With fewer bytes there is no whole frame. */
  #needed = LENGTH_BYTES

  constructor(frame: (frame: FrameReader) => void) {
    this.#frame = frame
  }

  receive(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#length += piece.length
    // A long frame is put together once, not with each of its pieces.
    if (this.#length < this.#needed) return
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces, this.#length)
    const rest = bytes.subarray(this.#split(bytes))
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#length = rest.length
  }

  #split(bytes: Buffer): number {
    let at = 0
    while (bytes.length - at >= LENGTH_BYTES) {
      const start = at + LENGTH_BYTES
      const length = bytes.readUInt32LE(at)
      if (length > MAX_FRAME_BYTES) throw new RangeError('a frame is too long')
      if (start + length > bytes.length) {
        this.#needed = LENGTH_BYTES + length
        return at
      }
      this.#frame(new FrameReader(bytes, start, start + length))
      at = start + length
    }
    this.#needed = LENGTH_BYTES
    return at
  }
}
