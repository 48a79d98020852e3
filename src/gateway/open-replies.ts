import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'

interface OpenReply {
  readonly socket: Socket
  readonly startedAt: number
}

/**
 * The replies that are not sent yet, in the order in which their requests arrived. Each is stored with its connection,
 * because a request loses its socket when its body has been read, and a pipelined response has none before its turn.
 */
export class OpenReplies implements Iterable<readonly [FastifyReply, Socket]> {
  readonly #replies = new Map<FastifyReply, OpenReply>()
  readonly #connections = new Map<Socket, Set<FastifyReply>>()
  readonly #onCutShort: (reply: FastifyReply, ms: number) => void

  /** `onCutShort` is called for each reply that is still open when its connection closes. */
  constructor(onCutShort: (reply: FastifyReply, ms: number) => void) {
    this.#onCutShort = onCutShort
  }

  add(reply: FastifyReply): void {
    const { socket } = reply.request.raw
    this.#replies.set(reply, { socket, startedAt: performance.now() })
    const replies = this.#connections.get(socket)
    if (replies !== undefined) replies.add(reply)
    else this.#addConnection(socket, reply)
  }

  /** Removes a reply that was sent and returns how long it took, or null if it was removed before. */
  finish(reply: FastifyReply): number | null {
    const open = this.#replies.get(reply)
    if (open === undefined) return null
    this.#replies.delete(reply)
    this.#connections.get(open.socket)?.delete(reply)
    return performance.now() - open.startedAt
  }

  /** The open replies of one connection: more than one if the client pipelines requests. */
  on(socket: Socket): readonly FastifyReply[] {
    return [...(this.#connections.get(socket) ?? [])]
  }

  *[Symbol.iterator](): Iterator<readonly [FastifyReply, Socket]> {
    for (const [reply, { socket }] of this.#replies) yield [reply, socket]
  }

  // A listener on the connection, not on the response: Node drops a pipelined response silently when the connection closes.
  #addConnection(socket: Socket, reply: FastifyReply): void {
    const replies = new Set([reply])
    this.#connections.set(socket, replies)
    const close = (): void => {
      this.#connections.delete(socket)
      for (const reply of replies) {
        const ms = this.finish(reply)
        if (ms !== null) this.#onCutShort(reply, ms)
      }
    }
    if (socket.destroyed) setImmediate(close)
    else socket.once('close', close)
  }
}
