import type { Moment } from '../clocks.js'
import { MultiMap } from '../multi-map.js'

export interface Registered {
  readonly user: string
  /** Index in the list of connections, maintained by the registry. */
  registryIndex: number
}

const INITIAL_CAPACITY = 1024
const NEVER_CHECKED: Moment = { monotonicMs: Number.POSITIVE_INFINITY, wallMs: Number.POSITIVE_INFINITY }

/** All connections of this node, as a list, by user, and by the time of their next check. */
export class ConnectionRegistry<Connection extends Registered> {
  readonly #all: Connection[] = []
  readonly #byUser = new MultiMap<string, Connection>()
  /**
   * Monotonic and wall-clock time of the next check, two numbers for each index of the list. The pass over all of them reads
   * no connection that is not due: with 100,000, most of them are in no cache of the processor.
   */
  #checkTimes = new Float64Array(2 * INITIAL_CAPACITY)

  get all(): readonly Connection[] {
    return this.#all
  }

  get users(): number {
    return this.#byUser.size
  }

  add(connection: Connection): void {
    const index = this.#all.push(connection) - 1
    connection.registryIndex = index
    if (2 * index >= this.#checkTimes.length) {
      const larger = new Float64Array(2 * this.#checkTimes.length)
      larger.set(this.#checkTimes)
      this.#checkTimes = larger
    }
    this.setNextCheck(connection, NEVER_CHECKED)
  }

  /** Sets when the connection is due. Has no effect on a connection that was removed. */
  setNextCheck({ registryIndex: index }: Connection, { monotonicMs, wallMs }: Moment): void {
    if (index === -1) return
    this.#checkTimes[2 * index] = monotonicMs
    this.#checkTimes[2 * index + 1] = wallMs
  }

  /** Calls `check` for the connections that are due. It may remove connections. */
  checkDue(now: Moment, check: (connection: Connection) => void): void {
    // Backwards, because the last connection moves into the slot of one that is removed.
    for (let index = this.#all.length - 1; index >= 0; index--) {
      if (!this.#isDue(index, now)) continue
      const connection = this.#all[index]
      if (connection !== undefined) check(connection)
    }
  }

  #isDue(index: number, { monotonicMs, wallMs }: Moment): boolean {
    const times = this.#checkTimes
    // Both indexes are in range.
    return (times[2 * index] as number) <= monotonicMs || (times[2 * index + 1] as number) <= wallMs
  }

  /** Moves the last connection into the freed slot, so that removal does not shift the list. */
  remove(connection: Connection): void {
    const { registryIndex: index } = connection
    if (index === -1) return
    const last = this.#all.pop()
    if (last !== undefined && last !== connection) {
      this.#all[index] = last
      this.#checkTimes.copyWithin(2 * index, 2 * last.registryIndex, 2 * last.registryIndex + 2)
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
