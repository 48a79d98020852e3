import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

/**
 * The replies that are not out yet, of all connections, in the order in which their requests arrived, each with its
 * connection: a request loses its socket when its body is read, and a response has none before its turn.
 */
export class OpenReplies implements Iterable<readonly [FastifyReply, Socket]> {
  readonly #sockets = new Map<FastifyReply, Socket>()

  add(reply: FastifyReply): void {
    this.#sockets.set(reply, reply.request.raw.socket)
  }

  delete(reply: FastifyReply): void {
    this.#sockets.delete(reply)
  }

  /** The replies of one connection: several where the client did not wait for one before its next request. */
  on(socket: Socket): FastifyReply[] {
    return [...this].filter(([, other]) => other === socket).map(([reply]) => reply)
  }

  [Symbol.iterator](): Iterator<readonly [FastifyReply, Socket]> {
    return this.#sockets.entries()
  }
}
