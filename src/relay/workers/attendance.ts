import type { JoinOrLeave } from '../core/broker.js'

/** Whom one worker has brought to which channels: those who are gone with it, should it end without a word. */
export class Attendance {
  readonly #present = new Map<string, Set<string>>()
  /** What was said of them when they came, by channel and client. */
  readonly #announced = new Map<string, Map<string, string>>()

  add(channel: string, client: string): void {
    const clients = this.#present.get(channel)
    if (clients === undefined) this.#present.set(channel, new Set([client]))
    else clients.add(client)
  }

  remove(channel: string, client: string): void {
    const clients = this.#present.get(channel)
    clients?.delete(client)
    if (clients?.size === 0) this.#present.delete(channel)
  }

  announce(channel: string, kind: JoinOrLeave, info: string): void {
    // Written by a worker of this program, so it is JSON and says who it is about.
    const { client } = JSON.parse(info) as { readonly client: string }
    const clients = this.#announced.get(channel)
    if (kind === 'leave') {
      clients?.delete(client)
      if (clients?.size === 0) this.#announced.delete(channel)
    } else if (clients === undefined) this.#announced.set(channel, new Map([[client, info]]))
    else clients.set(client, info)
  }

  *present(): Iterable<readonly [channel: string, client: string]> {
    for (const [channel, clients] of this.#present) for (const client of clients) yield [channel, client]
  }

  *announced(): Iterable<readonly [channel: string, info: string]> {
    for (const [channel, clients] of this.#announced) for (const info of clients.values()) yield [channel, info]
  }
}
