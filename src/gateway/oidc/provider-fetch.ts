/** What a provider says of itself, its keys and its people is some kilobytes long. More would only fill our memory. */
const MAX_BYTES = 1024 * 1024

/** Asks a provider, and has the whole answer before anybody looks at it: so its time and its size are limited in one place. */
export const providerFetch = async (url: string, options: object): Promise<Response> => {
  const response = await fetch(url, options)
  return new Response(response.body === null ? null : await wholeText(response.body), response)
}

const wholeText = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop ends the stream, and with it the connection.
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new Error(`the provider's answer is longer than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
