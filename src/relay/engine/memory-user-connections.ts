import type { UserConnection, UserConnections } from '../core/user-connections.js'

/** The connections of each user within one process, or at the workers of one. */
export class MemoryUserConnections implements UserConnections {
  readonly #clients = new Map<string, Set<string>>()

  /** Nothing that is counted here can be gone without being removed. */
  add({ user, client }: UserConnection, limit: number): readonly [] | null {
    const clients = this.#clients.get(user)
    if ((clients?.size ?? 0) >= limit && !clients?.has(client)) return []
    if (clients === undefined) this.#clients.set(user, new Set([client]))
    else clients.add(client)
    return null
  }

  remove({ user, client }: UserConnection): void {
    const clients = this.#clients.get(user)
    clients?.delete(client)
    if (clients?.size === 0) this.#clients.delete(user)
  }
}
