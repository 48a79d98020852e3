import type { ServerResponse } from 'node:http'

/** Whether the response was sent or can no longer be sent. */
export const isClosed = (response: ServerResponse): boolean =>
  response.closed || (isPipelined(response) && response.req.socket.destroyed)

/** Calls back exactly once: when the response was sent or can no longer be sent, at once if that is the case already. */
export const onceClosed = (response: ServerResponse, callback: () => void): void => {
  if (isClosed(response)) {
    callback()
    return
  }
  if (!isPipelined(response)) {
    response.once('close', callback)
    return
  }
  // Node drops a pipelined response silently when its connection closes. One listener for each of them is not a leak.
  const { socket } = response.req
  const close = (): void => {
    response.off('close', close)
    socket.off('close', close)
    callback()
  }
  response.on('close', close)
  socket.setMaxListeners(0)
  socket.on('close', close)
}

/** Whether it waits for the responses to earlier requests of its connection. */
const isPipelined = (response: ServerResponse): boolean => response.socket === null
