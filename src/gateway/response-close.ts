import type { ServerResponse } from 'node:http'

/**
 * Calls back exactly once: when the answer is out, or can no longer go out; at once where it is over already. A response
 * says so itself, except one that still waits behind another on its connection when the connection breaks: Node.js drops
 * it without a word, and whoever holds something until its end would hold it for ever.
 */
export const onceClosed = (response: ServerResponse, callback: () => void): void => {
  if (response.closed) callback()
  else if (response.socket !== null) response.once('close', callback)
  else whileWaiting(response, callback)
}

/** Pipelining: rare enough to take a listener more. */
const whileWaiting = (response: ServerResponse, callback: () => void): void => {
  const { socket: connection } = response.req
  if (connection.destroyed) {
    callback()
    return
  }
  const closed = (): void => {
    response.off('close', closed)
    connection.off('close', closed)
    callback()
  }
  // As many as wait: that is no leak, and needs no warning.
  connection.setMaxListeners(0)
  connection.on('close', closed)
  response.on('close', closed)
}
