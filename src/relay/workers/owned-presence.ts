import type { Presence } from '../core/broker.js'
import type { Link } from './link.js'
import { readList } from './messages.js'

/** Who listens, as the owner of the channels knows it. */
export class OwnedPresence implements Presence {
  readonly #owner: Link

  constructor(owner: Link) {
    this.#owner = owner
  }

  /** Not waited for: who is told of somebody over the same link, or another, is told later than this. */
  add(channel: string, client: string, user: string, info: string): void {
    this.#owner.tell('addPresence', (out) => out.text(channel).text(client).text(user).text(info))
  }

  remove(channel: string, client: string): void {
    this.#owner.tell('removePresence', (out) => out.text(channel).text(client))
  }

  read(channel: string): Promise<ReadonlyMap<string, string>> {
    return this.#owner.ask(
      'readPresence',
      (out) => out.text(channel),
      (fields) => new Map(readList(fields, () => [fields.text(), fields.text()] as const))
    )
  }

  count(channel: string): Promise<{ readonly clients: number; readonly users: number }> {
    return this.#owner.ask(
      'countPresence',
      (out) => out.text(channel),
      (fields) => ({ clients: fields.number(), users: fields.number() })
    )
  }
}
