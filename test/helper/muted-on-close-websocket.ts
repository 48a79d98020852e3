import { WebSocket } from 'ws'

/**
 * Emits no messages after `close`, as in browsers. With `ws` itself the official client can skip publications: when it closes
 * its socket before the reply to a subscribe command has arrived, it ignores the reply, but accepts the publications that
 * follow it.
 */
export class MutedOnCloseWebSocket extends WebSocket {
  override close(code?: number, reason?: string): void {
    this.onmessage = null
    super.close(code, reason)
  }
}
