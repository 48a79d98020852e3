/** A joined write stays below this: one turn full of large publications does not make one huge copy. */
const JOIN_BYTES = 256 * 1024

/** The same bytes in as few buffers as the limit allows. */
export const joined = (frames: readonly Buffer[]): readonly Buffer[] => {
  if (frames.length < 2) return frames
  const chunks: Buffer[] = []
  let start = 0
  let bytes = 0
  for (let index = 0; index < frames.length; index++) {
    const { length } = frames[index] as Buffer
    if (bytes > 0 && bytes + length > JOIN_BYTES) {
      chunks.push(Buffer.concat(frames.slice(start, index), bytes))
      start = index
      bytes = 0
    }
    bytes += length
  }
  chunks.push(Buffer.concat(frames.slice(start), bytes))
  return chunks
}
