type Body = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Reads a body completely, into memory; null if it is longer than `maxBytes`. */
export const readUpTo = async (body: Body, maxBytes: number): Promise<Buffer | null> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop early destroys the stream and with it the connection.
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Reads a body completely, into memory. Throws if it is longer than `maxBytes`. */
export const readBounded = async (body: Body, maxBytes: number): Promise<Buffer> => {
  const read = await readUpTo(body, maxBytes)
  if (read === null) throw new Error(`the body is longer than ${maxBytes} bytes`)
  return read
}
