import type { FilterNode, MapSubscriptionOptions } from 'centrifuge'
import { Listeners } from '../listeners.js'
import type { MapHandlers, MapType, RelayConnection } from './relay-connection.js'
import { notConnected, type RelayError } from './relay-error.js'
import type { SharedChannel } from './shared-channels.js'
import { requestToken } from './shared-stream.js'
import type { MapSubscriber } from './subscribers.js'
import { type CurrentView, grantedView, type View, viewData, viewToAsk, WHOLE } from './view.js'

export type MapState =
  /** The entries were not received yet. */
  | 'loading'
  | 'live'
  /** Disconnected: the entries are the last known ones. */
  | 'stale'
  /** The relay rejected the subscription (`error` says why), or the map was closed. */
  | 'closed'

export interface MapChange<Value> {
  readonly key: string
  /** Undefined if the entry was removed. */
  readonly value: Value | undefined
  /** Undefined if the entry is new. */
  readonly previous: Value | undefined
}

export interface LiveMapOptions {
  /** The kind of map: keyed entries of the application (default), or the clients or users of a channel. */
  readonly type?: MapType
  /** Entries per page while the map is loaded. */
  readonly pageSize?: number
  /** Receive changed entries as deltas, if the namespace allows it. */
  readonly delta?: boolean
  /** Only entries with matching tags. */
  readonly filter?: FilterNode
  /** Only entries inside, if the namespace has views. */
  readonly view?: View
  /** A subscription token, or a function that requests one. The function is called again before a token expires. */
  readonly token?: string | ((channel: string) => Promise<string>)
}

/** A map channel as it is subscribed to. All handles of the channel share it. */
export class SharedMap implements SharedChannel, MapHandlers {
  readonly channel: string
  readonly options: LiveMapOptions & { readonly kind: 'map' }
  readonly entries = new Map<string, unknown>()
  readonly changes = new Listeners<readonly MapChange<unknown>[]>()
  readonly states = new Listeners<MapState>()
  state: MapState = 'loading'
  error: RelayError | null = null
  #wanted: View | null
  #view: CurrentView = WHOLE
  #connection: RelayConnection | null = null
  #subscriber: MapSubscriber | null = null

  constructor(channel: string, options: LiveMapOptions) {
    this.channel = channel
    this.options = { ...options, kind: 'map' }
    this.#wanted = options.view ?? null
  }

  open(connection: RelayConnection): void {
    this.#connection = connection
    this.#subscribe(viewToAsk(this.#wanted, WHOLE) ?? null)
  }

  #subscribe(asked: View | null): void {
    const { pageSize, delta, filter, token, type = 'map' } = this.options
    this.#view = { asked, granted: null }
    const data = viewData(asked)
    const options: MapSubscriptionOptions = {
      ...(pageSize !== undefined && { pageSize }),
      ...(delta && { delta: 'fossil' as const }),
      ...(filter !== undefined && { tagsFilter: filter }),
      ...(typeof token === 'string' && { token }),
      ...(typeof token === 'function' && { getToken: () => requestToken(token, this.channel) }),
      ...(data !== undefined && { data })
    }
    this.#subscriber?.close()
    this.#subscriber = this.#connection?.subscribeMap(this.channel, type, options, this) ?? null
  }

  disconnect(): void {
    this.#connection = null
    this.#subscriber?.close()
    this.#subscriber = null
    this.subscribing()
  }

  reset(): void {
    this.sync([])
    this.error = null
    this.#setState('loading')
  }

  retry(): void {
    if (this.state !== 'closed') return
    this.#setState('loading')
    this.#connection?.resubscribe(this.channel)
  }

  end(): void {
    this.#subscriber?.close()
    this.#subscriber = null
    this.#setState('closed')
  }

  setView(view: View | null): void {
    this.#wanted = view
    const asked = viewToAsk(view, this.#view)
    if (asked !== undefined && this.#connection !== null) this.#subscribe(asked)
  }

  get connected(): MapSubscriber {
    if (this.#subscriber === null) throw notConnected()
    return this.#subscriber
  }

  subscribed(data: unknown): void {
    this.#view = { ...this.#view, granted: grantedView(data) }
    this.error = null
    this.#setState('live')
    // The screen may have moved while the subscription was pending. Later, because the official client is still busy with the
    // reply.
    queueMicrotask(() => this.setView(this.#wanted))
  }

  subscribing(): void {
    if (this.state === 'live') this.#setState('stale')
    else if (this.state === 'closed') this.#setState('loading')
  }

  rejected(error: RelayError, isRetryable: boolean): void {
    this.error = error
    if (isRetryable) this.subscribing()
    else this.#setState('closed')
  }

  /** Replaces all entries. */
  sync(entries: readonly { readonly key: string; readonly data: unknown }[]): void {
    const changes: MapChange<unknown>[] = []
    const keys = new Set(entries.map(({ key }) => key))
    for (const [key, previous] of this.entries) {
      if (keys.has(key)) continue
      this.entries.delete(key)
      changes.push({ key, value: undefined, previous })
    }
    for (const { key, data } of entries) changes.push(this.#set(key, data))
    if (changes.length > 0) this.changes.emit(changes)
  }

  update(key: string, data: unknown, isRemoved: boolean): void {
    if (!isRemoved) this.changes.emit([this.#set(key, data)])
    else {
      const previous = this.entries.get(key)
      if (this.entries.delete(key)) this.changes.emit([{ key, value: undefined, previous }])
    }
  }

  #set(key: string, value: unknown): MapChange<unknown> {
    const previous = this.entries.get(key)
    this.entries.set(key, value)
    return { key, value, previous }
  }

  #setState(state: MapState): void {
    if (state === this.state) return
    this.state = state
    this.states.emit(state)
  }
}

/**
 * The entries of a map channel, kept up to date. Reads like a `Map`; values are not checked and must not be changed. After a
 * disconnect the entries stay, and the changes that were missed follow.
 */
export class LiveMap<Value = unknown> implements ReadonlyMap<string, Value> {
  readonly #shared: SharedMap
  readonly #release: () => void
  readonly #untilConnected: () => Promise<unknown>

  constructor(shared: SharedMap, release: () => void, untilConnected: () => Promise<unknown>) {
    this.#shared = shared
    this.#release = release
    this.#untilConnected = untilConnected
  }

  /** The values are not checked; the caller declares their type. */
  get #entries(): ReadonlyMap<string, Value> {
    return this.#shared.entries as ReadonlyMap<string, Value>
  }

  get channel(): string {
    return this.#shared.channel
  }

  get state(): MapState {
    return this.#shared.state
  }

  /** Why the relay rejected the subscription; null if it did not. */
  get error(): RelayError | null {
    return this.#shared.error
  }

  get size(): number {
    return this.#shared.entries.size
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)
  }

  has(key: string): boolean {
    return this.#shared.entries.has(key)
  }

  keys(): MapIterator<string> {
    return this.#shared.entries.keys()
  }

  values(): MapIterator<Value> {
    return this.#entries.values()
  }

  entries(): MapIterator<[string, Value]> {
    return this.#entries.entries()
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.entries()
  }

  forEach(callback: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void): void {
    for (const [key, value] of this.#entries) callback(value, key, this)
  }

  /** Called after each change, with all changes that arrived together. Returns a function that removes the listener. */
  onChange(listener: (changes: readonly MapChange<Value>[]) => void): () => void {
    // As in `#entries`.
    return this.#shared.changes.add(listener as (changes: readonly MapChange<unknown>[]) => void)
  }

  onState(listener: (state: MapState) => void): () => void {
    return this.#shared.states.add(listener)
  }

  /** Receives the entries inside the rectangle only, or all for null. The current ones stay until the others have arrived. */
  setView(view: View | null): void {
    this.#shared.setView(view)
  }

  /** Writes an entry, if the namespace allows it to clients. */
  async publish(key: string, value: Value): Promise<void> {
    await this.#untilConnected()
    await this.#shared.connected.publish(key, value)
  }

  /** Removes an entry, if the namespace allows it to clients. */
  async remove(key: string): Promise<void> {
    await this.#untilConnected()
    await this.#shared.connected.remove(key)
  }

  /** The last handle of a channel unsubscribes. */
  close(): void {
    this.#release()
  }
}
