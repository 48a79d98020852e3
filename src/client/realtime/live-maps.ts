import { LiveMap, type LiveMapOptions, SharedMap } from './live-map.js'
import { ReferenceCounts } from './reference-counts.js'
import type { RelayConnection } from './relay-connection.js'

/** The open maps. They are subscribed to again on every new connection. */
export class LiveMaps {
  readonly #maps = new Map<string, SharedMap<unknown>>()
  readonly #references = new ReferenceCounts(
    () => undefined,
    (channel) => {
      this.#maps.get(channel)?.end()
      this.#maps.delete(channel)
    }
  )
  #connection: RelayConnection | null = null

  /** Throws if the channel is open with other options. */
  open<Value>(channel: string, options: LiveMapOptions): LiveMap<Value> {
    const known = this.#maps.get(channel)
    if (known !== undefined && !areSame(known.options, options))
      throw new TypeError(`the map ${channel} is open with other options`)
    const map = known ?? new SharedMap<unknown>(channel, options)
    if (known === undefined) {
      this.#maps.set(channel, map)
      if (this.#connection !== null) map.open(this.#connection)
    }
    // The values of a map are not checked.
    return new LiveMap<Value>(map as SharedMap<Value>, this.#references.acquire(channel))
  }

  /** Null while there is no connection. */
  connect(connection: RelayConnection | null): void {
    this.#connection = connection
    for (const map of this.#maps.values()) {
      if (connection === null) map.interrupted()
      else map.open(connection)
    }
  }
}

/** Functions are equal if they are the same. */
const areSame = (one: LiveMapOptions, other: LiveMapOptions): boolean =>
  one.getToken === other.getToken && JSON.stringify(sorted(one)) === JSON.stringify(sorted(other))

const sorted = (options: LiveMapOptions): readonly (readonly [string, unknown])[] =>
  Object.entries(options).sort(([one], [other]) => (one < other ? -1 : 1))
