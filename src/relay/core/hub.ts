import type { Delivery, JoinOrLeave, Publication } from './broker.js'
import { Channel, type Outgoing } from './channel.js'
import type { ChannelKind } from './channels.js'
import type { Conflator } from './conflate.js'
import { flushGroups } from './flush.js'
import type { Group } from './group.js'

/** Knows which channels this node listens to, and hands them what arrives. */
export class Hub implements Delivery, Outgoing {
  readonly #channels = new Map<string, Channel>()
  readonly #atEndOfTurn: (task: () => void) => void
  readonly #conflators: (path: string) => Conflator
  #dirty: Group[] = []
  readonly #flush = (): void => this.flush()

  constructor(atEndOfTurn: (task: () => void) => void, conflators: (path: string) => Conflator) {
    this.#atEndOfTurn = atEndOfTurn
    this.#conflators = conflators
  }

  get channels(): ReadonlyMap<string, Channel> {
    return this.#channels
  }

  get hasQueued(): boolean {
    return this.#dirty.length > 0
  }

  /** The channel, and whether this is its first listener here: the caller then subscribes at the broker. */
  open(name: string, kind: ChannelKind): Channel {
    const known = this.#channels.get(name)
    if (known !== undefined) return known
    const { conflate } = kind.options
    const channel = new Channel(name, kind, this, conflate === null ? null : this.#conflators(conflate))
    this.#channels.set(name, channel)
    return channel
  }

  /** Once nobody listens any more. */
  drop(channel: Channel): void {
    this.#channels.delete(channel.name)
  }

  publication(channel: string, publication: Publication, epoch: string): void {
    this.#channels.get(channel)?.deliver(publication, epoch)
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    this.#channels.get(channel)?.pushJoinOrLeave(kind, info)
  }

  add(group: Group): void {
    if (this.#dirty.push(group) === 1) this.#atEndOfTurn(this.#flush)
  }

  flush(): void {
    if (this.#dirty.length === 0) return
    const groups = this.#dirty
    this.#dirty = []
    flushGroups(groups)
  }
}
