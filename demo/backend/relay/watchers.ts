import type { StateChange } from '../../../src/backend/index.js'
import { isObject } from '../../../src/shared/is-object.js'

/** The relay's HTTP API. */
export interface RelayApi {
  readonly url: string
  readonly apiKey: string
}

const TIMEOUT_MS = 3000

/**
 * The users who watch a channel. Webhooks report which channels have subscribers, so that the relay is asked for the users of
 * those only.
 */
export class Watchers {
  readonly #relay: RelayApi
  /** By channel. A channel without an entry was not reported since the start of this process. */
  readonly #isOccupied = new Map<string, boolean>()

  constructor(relay: RelayApi) {
    this.#relay = relay
  }

  /** Returns whether something has changed: the relay may repeat an event. */
  apply(changes: readonly StateChange[]): boolean {
    let hasChanged = false
    for (const { channel, type } of changes) {
      const isOccupied = type === 'occupied'
      hasChanged ||= this.#isOccupied.get(channel) !== isOccupied
      this.#isOccupied.set(channel, isOccupied)
    }
    return hasChanged
  }

  /** The ids of the users on the channel; null if the relay does not respond. */
  async usersOn(channel: string): Promise<readonly string[] | null> {
    if (this.#isOccupied.get(channel) === false) return []
    try {
      const response = await fetch(`${this.#relay.url}/presence`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': this.#relay.apiKey },
        body: JSON.stringify({ channel }),
        signal: AbortSignal.timeout(TIMEOUT_MS)
      })
      return usersIn(await response.json())
    } catch {
      return null
    }
  }
}

const usersIn = (body: unknown): readonly string[] | null => {
  const result = isObject(body) ? body.result : null
  const presence = isObject(result) ? result.presence : null
  if (!isObject(presence)) return null
  const users = Object.values(presence).map((client) => (isObject(client) ? String(client.user) : ''))
  return [...new Set(users)].sort()
}
