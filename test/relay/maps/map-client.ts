import { once } from 'node:events'
import type { Centrifuge, MapSubscriptionOptions } from 'centrifuge'
import type { WebSocket } from 'ws'
import type { Teardown } from '../../helper/child.js'
import { MutedOnCloseWebSocket } from '../../helper/muted-on-close-websocket.js'
import { officialClient, officialProtobufClient } from '../../helper/relay.js'

/** The data of an entry. The text is long enough for deltas. */
export interface Value {
  readonly n: number
  readonly x?: number
  readonly y?: number
  readonly text: string
}

/** Every value has its own coordinates, and some have none. */
const placeOf = (n: number): { readonly x: number; readonly y: number } | null =>
  n % 7 === 0 ? null : { x: (n * 13) % 40, y: (n * 29) % 40 }

export const valueWith = (n: number): Value => ({
  n,
  ...placeOf(n),
  text: `a text that all values share, before ${n}`
})

/** A rectangle of whole cells. */
export interface View {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

/** Options of a namespace whose clients may ask for views. */
export const VIEW_OPTIONS = { view_x: 'x', view_y: 'y', view_cell: 10 }

/** Entries without coordinates are in every view. */
const isInView = (view: View | null, n: number): boolean => {
  const place = placeOf(n)
  if (view === null || place === null) return true
  return place.x >= view.x && place.x < view.x + view.w && place.y >= view.y && place.y < view.y + view.h
}

/** As `null`, if a client does not filter. */
export type Tag = 'a' | 'b'

/** What a client asks for. */
export interface ClientKind {
  readonly isProtobuf: boolean
  readonly pageSize: number
  readonly hasDelta: boolean
  readonly tag: Tag | null
  /** Excludes deltas and filters. */
  readonly view: View | null
}

/** The keys and numbers of entries as one text. */
export const stateText = (entries: Iterable<readonly [key: string, n: number]>): string =>
  JSON.stringify([...entries].sort(([one], [other]) => (one < other ? -1 : 1)))

/** An official client that follows a map, and the application behind it. */
export class MapClient {
  readonly kind: ClientKind
  readonly #client: Centrifuge
  readonly #channel: string
  readonly #subscription: ReturnType<Centrifuge['newMapSubscription']>
  readonly #sockets: Set<WebSocket>
  readonly #entries = new Map<string, number>()
  readonly #events: string[] = []
  #view: View | null
  #isSubscribed = false

  constructor(t: Teardown, port: number, channel: string, kind: ClientKind) {
    this.kind = kind
    this.#view = kind.view
    this.#channel = channel
    const sockets = new Set<WebSocket>()
    this.#sockets = sockets
    class CountedWebSocket extends MutedOnCloseWebSocket {
      constructor(...args: ConstructorParameters<typeof WebSocket>) {
        super(...args)
        sockets.add(this)
        this.on('close', () => sockets.delete(this))
      }
    }
    const create = kind.isProtobuf ? officialProtobufClient : officialClient
    this.#client = create(t, { port }, 'websocket', { websocket: CountedWebSocket })
    this.#subscription = this.#client.newMapSubscription(channel, optionsOf(kind))
    this.#subscription.on('sync', ({ entries }) => {
      this.#entries.clear()
      for (const { key, data } of entries) this.#entries.set(key, numberOf(data))
      this.#events.push(`sync of ${entries.length}`)
    })
    this.#subscription.on('update', ({ key, data, removed }) => {
      if (removed) this.#entries.delete(key)
      else this.#entries.set(key, numberOf(data))
      this.#events.push(removed ? `-${key}` : `${key}=${numberOf(data)}`)
    })
    this.#subscription.on('subscribed', ({ recovered, streamPosition }) => {
      this.#isSubscribed = true
      this.#events.push(`subscribed at ${streamPosition?.offset}${recovered ? ' with recovery' : ''}`)
    })
    this.#subscription.on('subscribing', ({ code, reason }) => {
      this.#isSubscribed = false
      this.#events.push(`subscribing ${code} ${reason}`)
    })
    this.#subscription.on('unsubscribed', ({ code }) => void this.#events.push(`unsubscribed ${code}`))
    this.#subscription.on('error', ({ error }) => void this.#events.push(`error ${error.code} ${error.message}`))
    this.#subscription.subscribe()
  }

  /** For the message of a failure. */
  get events(): string {
    return this.#events.slice(-60).join(', ')
  }

  get isConnected(): boolean {
    return this.#client.state === 'connected'
  }

  get isSubscribed(): boolean {
    return this.#isSubscribed
  }

  get state(): string {
    return stateText(this.#entries)
  }

  /** Whether the client must have the entry with this value. */
  isInView(n: number): boolean {
    return isInView(this.#view, n)
  }

  connect(): void {
    this.#client.connect()
  }

  disconnect(): void {
    this.#events.push('disconnect')
    this.#client.disconnect()
  }

  /** Starts from scratch: the SDK keeps no state of a subscription that was ended. With a view, it is moved. */
  resubscribe(): void {
    if (!this.#isSubscribed) return
    this.#events.push('resubscribe')
    this.#subscription.unsubscribe()
    if (this.#view !== null) {
      this.#view = { ...this.#view, x: (this.#view.x + 10) % 40 }
      this.#subscription.setData(encoded({ view: this.#view }, this.kind.isProtobuf))
    }
    this.#subscription.subscribe()
  }

  /** Ends the connection without a close frame. The SDK connects again and recovers. */
  async cut(): Promise<void> {
    if (!this.isConnected) return
    this.#events.push('cut')
    const closed = [...this.#sockets].map((socket) => {
      socket.terminate()
      return once(socket, 'close')
    })
    await Promise.all(closed)
  }

  async publish(key: string, value: Value): Promise<void> {
    await this.#client.mapPublish(this.#channel, key, encoded(value, this.kind.isProtobuf))
  }

  async remove(key: string): Promise<void> {
    await this.#client.mapRemove(this.#channel, key)
  }
}

const numberOf = (data: Uint8Array | Value): number =>
  (data instanceof Uint8Array ? JSON.parse(Buffer.from(data).toString()) : data).n

const encoded = (value: unknown, isProtobuf: boolean): unknown =>
  isProtobuf ? Buffer.from(JSON.stringify(value)) : value

const optionsOf = ({ isProtobuf, pageSize, hasDelta, tag, view }: ClientKind): MapSubscriptionOptions => ({
  pageSize,
  minResubscribeDelay: 1,
  maxResubscribeDelay: 20,
  ...(hasDelta && { delta: 'fossil' as const }),
  ...(view !== null && { data: encoded({ view }, isProtobuf) }),
  ...(tag !== null && { tagsFilter: { key: 't', cmp: 'eq', val: tag } })
})
