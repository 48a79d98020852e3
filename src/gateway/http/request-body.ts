import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/**
 * The body of a request as a stream of its own. A reader that destroys it, such as undici, leaves the request intact, so
 * that the rest of the body can be discarded. `onFirstRead` is called when a reader first asks for bytes.
 */
export const requestBody = (request: IncomingMessage, onFirstRead: () => void = () => undefined): Readable => {
  let hasBegun = false
  const begin = (): void => {
    hasBegun = true
    onFirstRead()
    request.on('data', (chunk: Buffer) => {
      if (!body.push(chunk)) request.pause()
    })
    request.on('end', () => body.push(null))
    request.on('error', (error) => body.destroy(error))
  }
  const body = new Readable({
    read() {
      if (hasBegun) request.resume()
      else begin()
    }
  })
  return body
}
