import type { Clocks } from '../core/clocks.js'
import type { Presence } from '../core/engine.js'
import { MemoryChannelStates } from './memory-channel-states.js'

interface PresenceEntry {
  readonly user: string
  readonly info: string
}

/** Presence within one process. Entries need no expiry, because they end with the process. */
export class MemoryPresence implements Presence {
  readonly channelStates: MemoryChannelStates
  readonly #channels = new Map<string, Map<string, PresenceEntry>>()

  constructor(clocks: Clocks) {
    this.channelStates = new MemoryChannelStates(clocks, () => this.#channels.keys())
  }

  async add(channel: string, client: string, user: string, info: string): Promise<void> {
    const entries = this.#channels.get(channel)
    if (entries !== undefined) entries.set(client, { user, info })
    else {
      this.#channels.set(channel, new Map([[client, { user, info }]]))
      this.channelStates.occupied(channel)
    }
  }

  async remove(channel: string, client: string): Promise<void> {
    const entries = this.#channels.get(channel)
    entries?.delete(client)
    if (entries?.size !== 0) return
    this.#channels.delete(channel)
    this.channelStates.emptied(channel)
  }

  async read(channel: string): Promise<ReadonlyMap<string, string>> {
    return new Map([...(this.#channels.get(channel) ?? [])].map(([client, { info }]) => [client, info]))
  }

  async count(channel: string): Promise<{ readonly clients: number; readonly users: number }> {
    const entries = this.#channels.get(channel)
    return { clients: entries?.size ?? 0, users: new Set([...(entries?.values() ?? [])].map(({ user }) => user)).size }
  }
}
