import type { Delivery, JoinOrLeave, Publication } from './broker.js'
import { Channel, type Outgoing } from './channel.js'
import type { ChannelKind } from './channels.js'
import type { Conflator } from './conflate.js'
import type { RelayParts } from './context.js'
import { flushGroups } from './flush.js'
import type { Group } from './group.js'

type HubParts = Pick<RelayParts, 'atEndOfTurn' | 'monotonicMs' | 'nowMs' | 'watch'>

/** Knows which channels this node listens to, and hands them what arrives. */
export class Hub implements Delivery, Outgoing {
  readonly #channels = new Map<string, Channel>()
  readonly #parts: HubParts
  readonly #conflators: (path: string) => Conflator
  #opened = 0
  #dirty: Group[] = []
  /** Namespace and time of what the groups hold. */
  #queued: { readonly namespace: string; readonly time: number }[] = []
  readonly #flush = (): void => this.flush()

  constructor(parts: HubParts, conflators: (path: string) => Conflator) {
    this.#parts = parts
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
    const channel = new Channel(
      name,
      kind,
      this,
      this.#parts.watch,
      conflate === null ? null : this.#conflators(conflate)
    )
    channel.number = ++this.#opened
    this.#channels.set(name, channel)
    return channel
  }

  /** Once nobody listens any more. */
  drop(channel: Channel): void {
    this.#channels.delete(channel.name)
  }

  publication(channel: string, publication: Publication, epoch: string): void {
    const known = this.#channels.get(channel)
    if (known === undefined) return
    known.deliver(publication, epoch)
    this.#queued.push({ namespace: known.namespace, time: publication.time })
    if (this.#queued.length === 1) this.#parts.atEndOfTurn(this.#flush)
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    const known = this.#channels.get(channel)
    if (known === undefined) return
    known.pushJoinOrLeave(kind, info)
    this.#parts.watch.delivered(kind, known.namespace, 0, 0)
  }

  mayHaveMissed(channel: string): void {
    this.#channels.get(channel)?.doubt()
  }

  add(group: Group): void {
    this.#dirty.push(group)
  }

  flush(): void {
    const { monotonicMs, nowMs, watch } = this.#parts
    const queued = this.#queued
    // In the middle of a delivery a group may hold something before the delivery is counted.
    if (queued.length === 0 && this.#dirty.length === 0) return
    const groups = this.#dirty
    this.#dirty = []
    this.#queued = []
    const startedAt = monotonicMs()
    flushGroups(groups)
    const seconds = (monotonicMs() - startedAt) / 1000
    const now = nowMs()
    for (const { namespace, time } of queued) {
      // The publisher's clock, or our own before it was set, may be ahead.
      watch.delivered('publication', namespace, seconds, Math.max(0, now - time) / 1000)
    }
  }
}
