import type { ServerResponse } from 'node:http'

// A response says itself that it is over, except one that still waits behind another on its connection when the connection
// breaks: Node.js drops it without a word, and whoever holds something until its end would hold it for ever.

/** Whether the answer is out, or can no longer go out. */
export const isClosed = (response: ServerResponse): boolean =>
  response.closed || (isWaiting(response) && response.req.socket.destroyed)

/** Calls back exactly once: when the answer is out or can no longer go out, and at once where it is so already. */
export const onceClosed = (response: ServerResponse, callback: () => void): void => {
  if (isClosed(response)) callback()
  else if (isWaiting(response)) onceThisOrConnectionClosed(response, callback)
  else response.once('close', callback)
}

/** For its turn on the connection: the client sent several requests without waiting for answers. */
const isWaiting = (response: ServerResponse): boolean => response.socket === null

const onceThisOrConnectionClosed = (response: ServerResponse, callback: () => void): void => {
  const { socket: connection } = response.req
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
