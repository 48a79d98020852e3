import { MultiMap } from '../multi-map.js'

export interface Registered {
  readonly user: string
  /** Index in the list of connections, maintained by the registry. */
  registryIndex: number
}

/** All connections of this node, as a list for frequent iteration and by user. */
export class ConnectionRegistry<Connection extends Registered> {
  readonly #all: Connection[] = []
  readonly #byUser = new MultiMap<string, Connection>()

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
    this.#byUser.delete(connection.user, connection)
  }

  /** Indexes the connection by user; called once the user is known. */
  setUser(connection: Connection): void {
    this.#byUser.add(connection.user, connection)
  }

  ofUser(user: string): readonly Connection[] {
    return this.#byUser.get(user)
  }

  countOfUser(user: string): number {
    return this.#byUser.count(user)
  }
}
