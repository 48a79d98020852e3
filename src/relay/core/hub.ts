import type { Delivery, JoinOrLeave, Position, Publication } from './broker.js'
import { Channel, type Outgoing } from './channel.js'
import type { ChannelKind } from './channels.js'
import type { Conflator } from './conflate.js'
import type { RelayParts } from './context.js'
import type { DeltaPatches } from './delta-patches.js'
import { flushGroups } from './flush.js'
import type { Group } from './group.js'
import type { ChannelOptions } from './options.js'

type HubParts = Pick<RelayParts, 'atEndOfTurn' | 'monotonicMs' | 'nowMs' | 'watch' | 'log'>

/** Knows which channels this node listens to, and hands them what arrives. */
export class Hub implements Delivery, Outgoing {
  readonly #channels = new Map<string, Channel>()
  readonly #parts: HubParts
  readonly #conflators: (path: string) => Conflator
  #opened = 0
  readonly #patches: DeltaPatches
  #dirty: Group[] = []
  /** Namespace and time of what the groups hold. */
  #queued: { readonly namespace: string; readonly time: number }[] = []
  readonly #flush = (): void => this.flush()

  constructor(parts: HubParts, conflators: (path: string) => Conflator, patches: DeltaPatches) {
    this.#parts = parts
    this.#conflators = conflators
    this.#patches = patches
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
    const channel = new Channel(name, kind, this, this.#parts.watch, this.#patches, this.#conflatorOf(kind.options))
    channel.number = ++this.#opened
    this.#channels.set(name, channel)
    return channel
  }

  /** New options for a channel that is open. */
  configure(channel: Channel, options: ChannelOptions): void {
    channel.configure(options, this.#conflatorOf(options))
  }

  #conflatorOf({ conflate }: ChannelOptions): Conflator | null {
    return conflate === null ? null : this.#conflators(conflate)
  }

  /** Once nobody listens any more. */
  drop(channel: Channel): void {
    this.#channels.delete(channel.name)
  }

  publication(channel: string, publication: Publication, epoch: string): void {
    const known = this.#channels.get(channel)
    if (known === undefined) return
    try {
      known.deliver(publication, epoch)
    } catch (error) {
      this.#failed(known, error)
    }
    this.#queued.push({ namespace: known.namespace, time: publication.time })
    if (this.#queued.length === 1) this.#parts.atEndOfTurn(this.#flush)
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    const known = this.#channels.get(channel)
    if (known === undefined) return
    try {
      known.pushJoinOrLeave(kind, info)
    } catch (error) {
      this.#failed(known, error)
    }
    this.#parts.watch.delivered(kind, known.namespace, 0, 0)
  }

  mayHaveMissed(channel: string): void {
    this.#channels.get(channel)?.doubt()
  }

  *positions(): Iterable<readonly [channel: string, position: Position]> {
    for (const channel of this.#channels.values()) {
      const position = channel.knownPosition
      if (position !== null) yield [channel.name, position]
    }
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
    flushGroups(groups, (error) => this.#report(error))
    const seconds = (monotonicMs() - startedAt) / 1000
    const now = nowMs()
    for (const { namespace, time } of queued) {
      // The publisher's clock, or our own before it was set, may be ahead.
      watch.delivered('publication', namespace, seconds, Math.max(0, now - time) / 1000)
    }
  }

  /**
   * A message could not be handed to the subscribers of its channel. Nobody knows which of them have it, so all of them
   * are closed; they come back and recover.
   */
  #failed(channel: Channel, error: unknown): void {
    this.#report(error, channel.name)
    for (const { outbox } of channel.subscriptions()) outbox.fail(error, true)
  }

  #report(error: unknown, channel?: string): void {
    const { watch, log } = this.#parts
    watch.unexpectedError('delivery')
    log.error({ err: error, channel }, 'internal error in a delivery')
  }
}
