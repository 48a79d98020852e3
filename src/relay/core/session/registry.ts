export interface Registered {
  readonly user: string
  /** Index in the list of connections, maintained by the registry. */
  registryIndex: number
}

/** All connections of this node, as a list for frequent iteration and by user. */
export class ConnectionRegistry<Connection extends Registered> {
  readonly #all: Connection[] = []
  // Most users have a single connection. A Set for each of them would be the largest part of an idle connection's memory.
  readonly #byUser = new Map<string, Connection | Set<Connection>>()

  get all(): readonly Connection[] {
    return this.#all
  }

  get users(): number {
    return this.#byUser.size
  }

  add(connection: Connection): void {
    connection.registryIndex = this.#all.push(connection) - 1
  }

  /** Moves the last connection into the freed slot, so that removal does not shift the list. */
  remove(connection: Connection): void {
    const { registryIndex: index } = connection
    if (index === -1) return
    const last = this.#all.pop()
    if (last !== undefined && last !== connection) {
      this.#all[index] = last
      last.registryIndex = index
    }
    connection.registryIndex = -1
    this.#removeFromUser(connection)
  }

  /** Indexes the connection by user; called once the user is known. */
  setUser(connection: Connection): void {
    const existing = this.#byUser.get(connection.user)
    if (existing === undefined) this.#byUser.set(connection.user, connection)
    else if (existing instanceof Set) existing.add(connection)
    else this.#byUser.set(connection.user, new Set([existing, connection]))
  }

  ofUser(user: string): readonly Connection[] {
    const existing = this.#byUser.get(user)
    if (existing === undefined) return []
    return existing instanceof Set ? [...existing] : [existing]
  }

  countOfUser(user: string): number {
    const existing = this.#byUser.get(user)
    return existing instanceof Set ? existing.size : existing === undefined ? 0 : 1
  }

  #removeFromUser(connection: Connection): void {
    const existing = this.#byUser.get(connection.user)
    if (existing instanceof Set) {
      existing.delete(connection)
      if (existing.size === 0) this.#byUser.delete(connection.user)
    } else if (existing === connection) this.#byUser.delete(connection.user)
  }
}
