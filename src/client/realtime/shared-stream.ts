import { type ClientInfo, type SubscriptionOptions, UnauthorizedError } from 'centrifuge'
import { isRejection } from '../api/api-error.js'
import { isObject } from '../fields-of.js'
import { Listeners } from '../listeners.js'
import type { RelayConnection, StreamHandlers, Subscribed } from './relay-connection.js'
import { CLIENT_CODES, notConnected, RelayError } from './relay-error.js'
import type { SharedChannel } from './shared-channels.js'
import type { StreamSubscriber } from './subscribers.js'
import type {
  Publication,
  StreamPosition,
  SubscribeOptions,
  SubscriptionEvents,
  SubscriptionState
} from './subscription-events.js'

/** Describes what is wrong with the data of a publication; null if nothing is. */
export type CheckData = (data: unknown) => string | null

/** A channel as it is subscribed to. All handles of the channel share it. */
export class SharedStream implements SharedChannel, StreamHandlers {
  readonly channel: string
  readonly events: { readonly [Name in keyof SubscriptionEvents]: Listeners<SubscriptionEvents[Name]> } = {
    publication: new Listeners(),
    state: new Listeners(),
    gap: new Listeners(),
    join: new Listeners(),
    leave: new Listeners(),
    error: new Listeners()
  }
  options: SubscribeOptions & { readonly kind: 'stream' }
  state: SubscriptionState = 'subscribing'
  error: RelayError | null = null
  latest: Publication | null = null
  /** Behind the last publication that was delivered. Null without recovery. */
  position: StreamPosition | null
  replyData: unknown
  readonly #check: CheckData | null
  #wasSubscribed = false
  #connection: RelayConnection | null = null
  #subscriber: StreamSubscriber | null = null

  constructor(channel: string, options: SubscribeOptions, check: CheckData | null) {
    if (options.delta && options.filter !== undefined)
      throw new TypeError(`the subscription to ${channel} cannot have both delta and filter`)
    if (options.maxRate !== undefined && options.data !== undefined && !isObject(options.data))
      throw new TypeError(`the data of the subscription to ${channel} must be an object, because it has a maxRate`)
    this.channel = channel
    this.options = { ...options, recover: options.recover ?? options.recover === null, kind: 'stream' }
    this.position = storedPosition(options)
    this.#check = check
  }

  open(connection: RelayConnection): void {
    this.#connection = connection
    this.#subscriber = connection.subscribe(this.channel, this.#wireOptions(), this)
  }

  disconnect(): void {
    this.#subscriber?.close()
    this.#subscriber = null
    this.#connection = null
    this.subscribing()
  }

  reset(): void {
    // A stored position is for the first user that subscribes.
    if (this.#wasSubscribed) this.position = null
    this.latest = null
    this.error = null
    this.replyData = undefined
  }

  retry(): void {
    if (this.state !== 'unsubscribed') return
    this.#setState('subscribing')
    this.#connection?.resubscribe(this.channel)
  }

  end(): void {
    this.#subscriber?.close()
    this.#subscriber = null
    this.#setState('unsubscribed')
  }

  /**
   * Subscribes again with other data. With a new subscription, because the old one would take a pending reply for its own,
   * and would recover from an offset of other data.
   */
  setData(data: unknown): void {
    this.options = { ...this.options, data }
    this.position = null
    this.#openAgain()
  }

  /** One handle that wants joins and leaves is enough: the others share its subscription. */
  shareWith({ joinLeave }: Pick<SubscribeOptions, 'joinLeave'>): void {
    if (!joinLeave || this.options.joinLeave) return
    this.options = { ...this.options, joinLeave }
    this.#openAgain()
  }

  #openAgain(): void {
    if (this.#connection === null) return
    this.#subscriber?.close()
    this.subscribing()
    this.open(this.#connection)
  }

  get connected(): StreamSubscriber {
    if (this.#subscriber === null) throw notConnected()
    return this.#subscriber
  }

  subscribing(): void {
    this.#setState('subscribing')
  }

  subscribed({ data, position, isRecovered, isGap }: Subscribed): void {
    this.#wasSubscribed = true
    this.replyData = data
    this.error = null
    if (!isRecovered || this.position === null) this.position = position
    // Recovered publications are emitted right after this event, each with its own position.
    else queueMicrotask(() => this.#advance(position?.offset))
    this.#setState('subscribed')
    if (isGap) this.events.gap.emit({ channel: this.channel })
  }

  publication(publication: Publication): void {
    this.#advance(publication.offset)
    const problem = this.#check?.(publication.data) ?? null
    if (problem !== null) {
      const message = `publication on ${this.channel} does not match its schema: ${problem}`
      this.events.error.emit(new RelayError({ code: CLIENT_CODES.wrongPublication, message, temporary: false }))
      return
    }
    this.latest = publication
    this.events.publication.emit(publication)
  }

  join(info: ClientInfo): void {
    this.events.join.emit(info)
  }

  leave(info: ClientInfo): void {
    this.events.leave.emit(info)
  }

  failed(error: RelayError): void {
    this.error = error
    this.events.error.emit(error)
  }

  rejected(error: RelayError, isRetryable: boolean): void {
    this.error = error
    this.#setState(isRetryable ? 'subscribing' : 'unsubscribed')
    this.events.error.emit(error)
  }

  #advance(offset: number | undefined): void {
    if (offset === undefined || this.position === null) return
    this.position = { ...this.position, offset: Math.max(this.position.offset, offset) }
  }

  #wireOptions(): SubscriptionOptions {
    const { recover = false, delta, maxRate, filter, data, token, joinLeave } = this.options
    const sent = maxRate === undefined ? data : { ...(isObject(data) && data), max_rate: maxRate }
    return {
      ...(recover !== false && { recoverable: true, positioned: true }),
      ...(this.position !== null && { since: this.position }),
      ...(delta && { delta: 'fossil' as const }),
      ...(filter !== undefined && { tagsFilter: filter }),
      ...(sent !== undefined && { data: sent }),
      ...(typeof token === 'string' && { token }),
      ...(typeof token === 'function' && { getToken: () => requestToken(token, this.channel) }),
      ...(joinLeave && { joinLeave })
    }
  }

  #setState(state: SubscriptionState): void {
    if (state === this.state) return
    this.state = state
    this.events.state.emit(state)
  }
}

const storedPosition = ({ recover }: SubscribeOptions): StreamPosition | null =>
  typeof recover === 'object' ? recover : null

/** A token that the service rejects ends the subscription; other errors are tried again. */
export const requestToken = async (token: (channel: string) => Promise<string>, channel: string): Promise<string> => {
  try {
    return await token(channel)
  } catch (error) {
    throw isRejection(error) ? new UnauthorizedError(error.message) : error
  }
}
