import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

declare module 'fastify' {
  interface FastifyReply {
    /** The connection that the reply is open on; null before and after. */
    openOn: ClientConnection | null
  }
}

export interface ClientConnection {
  readonly socket: Socket
  /** In the order of their requests: more than one if the client pipelines. */
  readonly replies: FastifyReply[]
}

const NO_REPLIES: readonly FastifyReply[] = []

/** `cutShort`: the connection closed, or the backend failed, before the response was complete. */
export type RequestEnded = (reply: FastifyReply, cutShort: boolean) => void

/** How a request ended. */
export interface RequestOutcome {
  readonly status: number
  /** The client disconnected, or the backend failed in the middle of its response. */
  readonly cutShort: boolean
  readonly ms: number
}

/**
 * The replies that are not sent yet. Each refers to its connection, because a request loses its socket when its body has
 * been read, and a pipelined response has none before its turn.
 */
export class OpenReplies implements Iterable<ClientConnection> {
  readonly #connections = new Map<Socket, ClientConnection>()
  readonly #onCutShort: (reply: FastifyReply) => void

  /** `onCutShort` is called for each reply that is still open when its connection closes. */
  constructor(onCutShort: (reply: FastifyReply) => void) {
    this.#onCutShort = onCutShort
  }

  add(reply: FastifyReply): void {
    const { socket } = reply.request.raw
    const connection = this.#connections.get(socket) ?? this.#addConnection(socket)
    connection.replies.push(reply)
    reply.openOn = connection
  }

  /** Removes a reply that was sent. Returns whether it was open. */
  remove(reply: FastifyReply): boolean {
    if (reply.openOn === null) return false
    const { replies } = reply.openOn
    replies.splice(replies.indexOf(reply), 1)
    reply.openOn = null
    return true
  }

  /** The open replies of one connection. */
  on(socket: Socket): readonly FastifyReply[] {
    return this.#connections.get(socket)?.replies.slice() ?? NO_REPLIES
  }

  /**
   * Resolves when destroyed connections have emitted `close`, which cancels their requests to the backend. The server emits
   * its own `close` earlier.
   */
  async closed(): Promise<void> {
    const closing = [...this.#connections.keys()].filter((socket) => socket.destroyed && !socket.closed)
    await Promise.all(closing.map((socket) => once(socket, 'close')))
  }

  /** All connections that have sent a request. */
  [Symbol.iterator](): Iterator<ClientConnection> {
    return this.#connections.values()
  }

  // A listener on the connection, not on the response: Node drops a pipelined response silently when the connection closes.
  #addConnection(socket: Socket): ClientConnection {
    const connection: ClientConnection = { socket, replies: [] }
    this.#connections.set(socket, connection)
    const close = (): void => {
      this.#connections.delete(socket)
      for (const reply of connection.replies.splice(0)) {
        reply.openOn = null
        this.#onCutShort(reply)
      }
    }
    if (socket.destroyed) setImmediate(close)
    else socket.once('close', close)
    return connection
  }
}
