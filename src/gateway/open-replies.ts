import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

/** The replies that are not out yet, of all connections, in the order in which their requests arrived. */
export class OpenReplies implements Iterable<FastifyReply> {
  readonly #replies = new Set<FastifyReply>()

  add(reply: FastifyReply): void {
    this.#replies.add(reply)
  }

  delete(reply: FastifyReply): void {
    this.#replies.delete(reply)
  }

  /** The replies of one connection: several where the client did not wait for one before its next request. */
  on(socket: Socket): FastifyReply[] {
    return [...this.#replies].filter(({ request }) => request.raw.socket === socket)
  }

  [Symbol.iterator](): Iterator<FastifyReply> {
    return this.#replies.values()
  }
}
