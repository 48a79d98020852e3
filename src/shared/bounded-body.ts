/** Reads a body completely. Throws if it is longer than `maxBytes`: it is held in memory. */
export const readBounded = async (
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number
): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop early destroys the stream and with it the connection.
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`the body is longer than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
