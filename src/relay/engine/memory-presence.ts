import type { Presence } from '../core/broker.js'

interface Entry {
  readonly user: string
  readonly info: string
}

/** Who listens to this process. It ends with the connections, so nothing runs out. */
export class MemoryPresence implements Presence {
  readonly #channels = new Map<string, Map<string, Entry>>()

  add(channel: string, client: string, user: string, info: string): void {
    const entries = this.#channels.get(channel)
    if (entries === undefined) this.#channels.set(channel, new Map([[client, { user, info }]]))
    else entries.set(client, { user, info })
  }

  remove(channel: string, client: string): void {
    const entries = this.#channels.get(channel)
    entries?.delete(client)
    if (entries?.size === 0) this.#channels.delete(channel)
  }

  read(channel: string): ReadonlyMap<string, string> {
    return new Map([...(this.#channels.get(channel) ?? [])].map(([client, { info }]) => [client, info]))
  }

  count(channel: string): { readonly clients: number; readonly users: number } {
    const entries = this.#channels.get(channel)
    return { clients: entries?.size ?? 0, users: new Set([...(entries?.values() ?? [])].map(({ user }) => user)).size }
  }
}
