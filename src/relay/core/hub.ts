import type { Delivery, JoinOrLeave, Position, Publication } from './broker.js'
import { Channel, type FlushQueue } from './channel.js'
import type { ResolvedChannel } from './channels.js'
import type { Conflator } from './conflation.js'
import type { DeltaPatches } from './delta.js'
import { flushGroups, type Group } from './group.js'
import type { ChannelOptions } from './options.js'
import type { RelayDependencies } from './relay.js'

type HubParts = Pick<RelayDependencies, 'atEndOfTurn' | 'monotonicMs' | 'nowMs' | 'metrics' | 'log'>

/** Knows which channels this node listens to, and hands them what arrives. */
export class Hub implements Delivery, FlushQueue {
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
  open(name: string, kind: ResolvedChannel): Channel {
    const known = this.#channels.get(name)
    if (known !== undefined) return known
    const channel = new Channel(name, kind, this, this.#parts.metrics, this.#patches, this.#conflatorOf(kind.options))
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
    this.#parts.metrics.delivered(kind, known.namespace, 0, 0)
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
    const { monotonicMs, nowMs, metrics } = this.#parts
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
      metrics.delivered('publication', namespace, seconds, Math.max(0, now - time) / 1000)
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
    const { metrics, log } = this.#parts
    metrics.unexpectedError('delivery')
    log.error({ err: error, channel }, 'internal error in a delivery')
  }
}

/** What a roster needs to know of a connection. */
export interface Registered {
  readonly user: string
  /** Its place in the list; kept by the roster. */
  registryIndex: number
}

/** Who is connected: all of them in a list that is walked often, and by user for those who ask about one. */
export class ConnectionRegistry<Connection extends Registered> {
  readonly #all: Connection[] = []
  // Most users have one connection; a set for each would be the largest thing that a connection owns here.
  readonly #byUser = new Map<string, Connection | Set<Connection>>()

  get all(): readonly Connection[] {
    return this.#all
  }

  get users(): number {
    return this.#byUser.size
  }

  add(client: Connection): void {
    client.registryIndex = this.#all.push(client) - 1
  }

  remove(client: Connection): void {
    const { registryIndex: rosterIndex } = client
    if (rosterIndex === -1) return
    const last = this.#all.pop() as Connection
    if (last !== client) {
      this.#all[rosterIndex] = last
      last.registryIndex = rosterIndex
    }
    client.registryIndex = -1
    this.#forgetUser(client)
  }

  /** Once it is known who is behind the connection. */
  setUser(client: Connection): void {
    const known = this.#byUser.get(client.user)
    if (known === undefined) this.#byUser.set(client.user, client)
    else if (known instanceof Set) known.add(client)
    else this.#byUser.set(client.user, new Set([known, client]))
  }

  ofUser(user: string): readonly Connection[] {
    const known = this.#byUser.get(user)
    if (known === undefined) return []
    return known instanceof Set ? [...known] : [known]
  }

  countOfUser(user: string): number {
    const known = this.#byUser.get(user)
    return known instanceof Set ? known.size : known === undefined ? 0 : 1
  }

  #forgetUser(client: Connection): void {
    const known = this.#byUser.get(client.user)
    if (known instanceof Set) {
      known.delete(client)
      if (known.size === 0) this.#byUser.delete(client.user)
    } else if (known === client) this.#byUser.delete(client.user)
  }
}
