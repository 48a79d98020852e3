import type { ServerResponse } from 'node:http'

// A response says itself that it is over, except one that still waits behind another on its connection when the connection
// breaks: Node.js drops it without a word, and whoever holds something until its end would hold it for ever.

/** Who wants to know: one listener for all of them, because each listener costs a microsecond. */
const callbacks = Symbol('callbacks')

interface WatchedResponse extends ServerResponse {
  [callbacks]?: (() => void)[]
}

/** Whether the answer is out, or can no longer go out. */
export const isClosed = (response: ServerResponse): boolean =>
  response.closed || (isWaiting(response) && response.req.socket.destroyed)

/** Calls back exactly once: when the answer is out or can no longer go out, and at once where it is so already. */
export const onceClosed = (response: WatchedResponse, callback: () => void): void => {
  if (isClosed(response)) {
    callback()
    return
  }
  const waiting = response[callbacks]
  if (waiting !== undefined) {
    waiting.push(callback)
    return
  }
  response[callbacks] = [callback]
  if (isWaiting(response)) watchConnectionToo(response)
  response.on('close', callBack)
}

/** For its turn on the connection: the client sent several requests without waiting for answers. */
const isWaiting = (response: ServerResponse): boolean => response.socket === null

function callBack(this: WatchedResponse): void {
  const waiting = this[callbacks] ?? []
  this[callbacks] = []
  for (const callback of waiting) callback()
}

const watchConnectionToo = (response: WatchedResponse): void => {
  const { socket: connection } = response.req
  const closed = (): void => callBack.call(response)
  // As many as wait: that is no leak, and needs no warning.
  connection.setMaxListeners(0)
  connection.on('close', closed)
  response.on('close', () => connection.off('close', closed))
}
