/** What a roster needs to know of a connection. */
export interface Listed {
  readonly user: string
  /** Its place in the list; kept by the roster. */
  rosterIndex: number
}

/** Who is connected: all of them in a list that is walked often, and by user for those who ask about one. */
export class Roster<Connection extends Listed> {
  readonly #all: Connection[] = []
  // Most users have one connection; a set for each would be the largest thing that a connection owns here.
  readonly #byUser = new Map<string, Connection | Set<Connection>>()

  get all(): readonly Connection[] {
    return this.#all
  }

  get users(): number {
    return this.#byUser.size
  }

  add(connection: Connection): void {
    connection.rosterIndex = this.#all.push(connection) - 1
  }

  remove(connection: Connection): void {
    const { rosterIndex } = connection
    if (rosterIndex === -1) return
    const last = this.#all.pop() as Connection
    if (last !== connection) {
      this.#all[rosterIndex] = last
      last.rosterIndex = rosterIndex
    }
    connection.rosterIndex = -1
    this.#forgetUser(connection)
  }

  /** Once it is known who is behind the connection. */
  nameUser(connection: Connection): void {
    const known = this.#byUser.get(connection.user)
    if (known === undefined) this.#byUser.set(connection.user, connection)
    else if (known instanceof Set) known.add(connection)
    else this.#byUser.set(connection.user, new Set([known, connection]))
  }

  ofUser(user: string): readonly Connection[] {
    const known = this.#byUser.get(user)
    if (known === undefined) return []
    return known instanceof Set ? [...known] : [known]
  }

  countOfUser(user: string): number {
    const known = this.#byUser.get(user)
    return known instanceof Set ? known.size : known === undefined ? 0 : 1
  }

  #forgetUser(connection: Connection): void {
    const known = this.#byUser.get(connection.user)
    if (known instanceof Set) {
      known.delete(connection)
      if (known.size === 0) this.#byUser.delete(connection.user)
    } else if (known === connection) this.#byUser.delete(connection.user)
  }
}
