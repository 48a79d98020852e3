import { type Options, type PresenceStatsResult, UnauthorizedError } from 'centrifuge'
import { type ApiError, isRejection } from '../api/api-error.js'
import { type Clock, systemClock } from '../clock.js'
import { Listeners } from '../listeners.js'
import type { Session } from '../session/session.js'
import type { ChannelData, ChannelSchemas, Channels, DataOf, Declared, NoChannels } from './channels.js'
import { LiveMap, type LiveMapOptions, SharedMap } from './live-map.js'
import { type Negotiation, negotiationOf } from './negotiation.js'
import type { RealtimeEvents } from './realtime-events.js'
import { type ConnectionHandlers, type ConnectionState, RelayConnection } from './relay-connection.js'
import { notConnected, RelayError } from './relay-error.js'
import { Retries } from './retries.js'
import { SharedChannels } from './shared-channels.js'
import { SharedStream } from './shared-stream.js'
import { ALL, Subscription } from './subscription.js'
import type { ClientInfo, History, HistoryOptions, SubscribeOptions } from './subscription-events.js'

export interface RealtimeOptions<Schemas extends ChannelSchemas = NoChannels> {
  /** Requests `/api/negotiate`. */
  readonly negotiate: () => Promise<unknown>
  /** The connection follows this session: it waits for a sign-in and closes when the session ends. */
  readonly session?: Pick<Session, 'state' | 'refresh' | 'onChange'>
  /** Connect visitors who are not signed in too. The service then decides about their negotiation. */
  readonly anonymous?: boolean
  readonly clock?: Clock
  /** Options of the centrifuge client, such as a WebSocket implementation or other delays. */
  readonly client?: Partial<Options>
  readonly random?: () => number
  /** The data of channels, from `defineChannels`. */
  readonly channels?: Channels<Schemas>
}

/** The name of the connection among the retries; the others are channels. */
const CONNECTION = ''

/**
 * Codes after which the official client gives up, and a new negotiation may help: invalid token (the secret has changed),
 * stale, disconnected by an operator, connection limit, channel limit.
 */
const RETRYABLE_DISCONNECTS: ReadonlySet<number> = new Set([3500, 3502, 3503, 3504, 3505])

interface Waiter {
  resolve(connection: RelayConnection): void
  reject(error: RelayError): void
}

/** One connection to the relay for all subscriptions, maps and calls. It opens with the first of them and reconnects by itself. */
export class Realtime<Schemas extends ChannelSchemas = NoChannels> {
  readonly #options: RealtimeOptions<Schemas>
  readonly #channels = new SharedChannels()
  readonly #retries: Retries
  readonly #events = {
    state: new Listeners<RealtimeEvents['state']>(),
    refused: new Listeners<RealtimeEvents['refused']>(),
    reset: new Listeners<RealtimeEvents['reset']>()
  }
  readonly #stopFollowing: () => void
  #state: ConnectionState = 'offline'
  #error: Error | null = null
  /** `idle`: the next use of a signed-in user opens the connection. `closed`: after `stop` or a rejection, it does not. */
  #mode: 'idle' | 'open' | 'closed' = 'idle'
  /** The last call of `start` or `stop`, which decides what the begin of a session does. */
  #wanted: 'while used' | 'always' | 'never' = 'while used'
  #connection: RelayConnection | null = null
  #waiters: Waiter[] = []
  /** The number of the current attempt; results of earlier ones are ignored. */
  #attempt = 0
  #user: string | null

  constructor(options: RealtimeOptions<Schemas>) {
    this.#options = options
    this.#retries = new Retries(options.clock ?? systemClock, options.random)
    this.#user = userOf(options.session)
    this.#stopFollowing = options.session?.onChange(() => this.#followSession()) ?? (() => undefined)
  }

  get state(): ConnectionState {
    return this.#state
  }

  /** Why the last attempt to connect failed or was rejected; null while the client is online, or has been stopped. */
  get error(): Error | null {
    return this.#error
  }

  /** Returns a function that removes the listener. */
  on<Name extends keyof RealtimeEvents>(name: Name, listener: (event: RealtimeEvents[Name]) => void): () => void {
    // TypeScript cannot relate the name to the type of its listeners through the table.
    return (this.#events[name] as unknown as Listeners<RealtimeEvents[Name]>).add(listener)
  }

  /** Connects without waiting for the first use and for a session; also after `stop` and after a rejection that is not retryable. */
  start(): void {
    this.#wanted = 'always'
    this.#begin()
  }

  /** Disconnects until `start` is called. The subscriptions continue then. */
  stop(): void {
    this.#wanted = 'never'
    this.#close()
  }

  /** Connects now instead of after the next delay. */
  reconnect(): void {
    this.#close()
    if (this.#wanted === 'never') this.#wanted = 'while used'
    this.#begin()
  }

  /** Disconnects and forgets everything that was received, until a session begins or `start` is called. */
  endSession(): void {
    this.#close()
    this.#channels.reset()
    this.#events.reset.emit(undefined)
  }

  /** Disconnects and ends all subscriptions, when the client is no longer used. */
  close(): void {
    this.#stopFollowing()
    this.stop()
    this.#channels.end()
  }

  /**
   * Subscribes to a channel. Handles of one channel must have the same options, and share one subscription. The type of its
   * data is that of `defineChannels`, unless the caller declares another one.
   */
  subscribe<Data = Declared, Channel extends string = string>(
    channel: Channel,
    options: SubscribeOptions = {}
  ): Subscription<DataOf<Data, Schemas, Channel>> {
    const check = this.#options.channels?.checkOf(channel) ?? null
    const { shared, release } = this.#channels.acquire(channel, () => new SharedStream(channel, options, check))
    this.#use()
    return new Subscription(shared, release, () => this.#connected())
  }

  /** Opens a map channel. Handles of the same channel share one subscription; the last `close` ends it. */
  map<Value = Declared, Channel extends string = string>(
    channel: Channel,
    options: LiveMapOptions = {}
  ): LiveMap<DataOf<Value, Schemas, Channel>> {
    const { shared, release } = this.#channels.acquire(channel, () => new SharedMap(channel, options))
    this.#use()
    return new LiveMap(shared, release, () => this.#connected())
  }

  /** Calls a method of the backend, if the relay has an RPC proxy. Like all calls, it waits while the client is connecting, and rejects with a `RelayError`. */
  async rpc<Result = unknown>(method: string, data: unknown = null): Promise<Result> {
    // The caller declares the type of the result.
    return (await (await this.#connected()).rpc(method, data)) as Result
  }

  /** Publishes, if the namespace allows it to clients. */
  async publish<Channel extends string>(channel: Channel, data: ChannelData<Schemas, Channel>): Promise<void> {
    await (await this.#connected()).publish(channel, data)
  }

  /** The clients that are subscribed to a channel. */
  async presence(channel: string): Promise<readonly ClientInfo[]> {
    return Object.values((await (await this.#connected()).presence(channel)).clients)
  }

  async presenceStats(channel: string): Promise<PresenceStatsResult> {
    return (await this.#connected()).presenceStats(channel)
  }

  /** Without a limit as many publications as the relay sends in one reply. */
  async history<Data = Declared, Channel extends string = string>(
    channel: Channel,
    { limit = ALL, ...options }: HistoryOptions = {}
  ): Promise<History<DataOf<Data, Schemas, Channel>>> {
    return (await this.#connected()).history(channel, { limit, ...options })
  }

  #use(): void {
    const { session, anonymous = false } = this.#options
    const mayConnect = session === undefined || anonymous || this.#user !== null
    if (this.#mode === 'idle' && mayConnect) this.#begin()
  }

  #begin(): void {
    if (this.#mode === 'open') return
    this.#mode = 'open'
    this.#setState('connecting')
    void this.#open()
  }

  #connected(): Promise<RelayConnection> {
    this.#use()
    if (this.#connection !== null) return Promise.resolve(this.#connection)
    if (this.#state !== 'connecting') return Promise.reject(notConnected())
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }))
  }

  #followSession(): void {
    const user = userOf(this.#options.session)
    if (user === this.#user) return
    this.#user = user
    this.endSession()
    if (this.#wanted === 'never') return
    this.#mode = 'idle'
    if (this.#wanted === 'always' || !this.#channels.isEmpty) this.#use()
  }

  async #open(): Promise<void> {
    this.#attempt += 1
    const attempt = this.#attempt
    try {
      const negotiation = negotiationOf(await this.#options.negotiate())
      if (attempt === this.#attempt) this.#connect(negotiation)
    } catch (error) {
      if (attempt !== this.#attempt) return
      if (isRejection(error)) this.#reject(error)
      else this.#retryLater(error instanceof Error ? error : null)
    }
  }

  #connect(negotiation: Negotiation): void {
    this.#connection?.close()
    const connection = new RelayConnection(
      negotiation,
      () => this.#renewToken(negotiation.url),
      this.#handlers,
      this.#options.client ?? {}
    )
    this.#connection = connection
    this.#channels.connect(connection)
    connection.open()
    for (const { resolve } of this.#waiters.splice(0)) resolve(connection)
  }

  /** Called by the centrifuge client before a token expires. The relay's address may have changed. */
  async #renewToken(url: string): Promise<string> {
    const attempt = this.#attempt
    try {
      const negotiation = negotiationOf(await this.#options.negotiate())
      if (negotiation.url !== url && attempt === this.#attempt) queueMicrotask(() => this.#connect(negotiation))
      return negotiation.token
    } catch (error) {
      if (!isRejection(error)) throw error
      if (attempt === this.#attempt) this.#reject(error)
      throw new UnauthorizedError(error.message)
    }
  }

  readonly #handlers: ConnectionHandlers = {
    state: (state, error) => {
      if (state === 'online') this.#retries.succeeded(CONNECTION)
      if (this.#mode === 'open' && (state === 'online' || error !== null)) this.#error = error
      // Another tab may have signed in as another user: the client must not reconnect with the token of the previous one.
      if (state === 'connecting') this.#options.session?.refresh()
      // Every retry starts as "connecting"; after a failure the state stays "offline" until one succeeds.
      if (this.#mode !== 'open' || (state === 'connecting' && this.#state === 'offline')) return
      this.#setState(state)
    },
    subscribed: (channel) => this.#retries.succeeded(channel),
    rejected: (channel, { code, message }, retryable) => {
      if (retryable) this.#retries.later(channel, () => this.#connection?.resubscribe(channel))
      this.#events.refused.emit({ channel, code, message, retryable })
    },
    ended: (code, message) => {
      const retryable = RETRYABLE_DISCONNECTS.has(code)
      const error = new RelayError({ code, message, temporary: retryable })
      if (retryable) this.#retryLater(error)
      else this.#close(error)
      this.#events.refused.emit({ channel: null, code, message, retryable })
    }
  }

  #reject(error: ApiError): void {
    const { code, message } = error
    this.#close(error)
    this.#events.refused.emit({ channel: null, code, message, retryable: false })
  }

  #retryLater(error: Error | null): void {
    this.#error = error
    this.#setState('offline')
    this.#rejectWaiters()
    this.#retries.later(CONNECTION, () => void this.#open())
  }

  #close(error: Error | null = null): void {
    this.#error = error
    this.#mode = 'closed'
    this.#attempt += 1
    this.#retries.clear()
    this.#connection?.close()
    this.#connection = null
    this.#channels.connect(null)
    this.#setState('offline')
    this.#rejectWaiters()
  }

  #rejectWaiters(): void {
    for (const { reject } of this.#waiters.splice(0)) reject(notConnected())
  }

  #setState(state: ConnectionState): void {
    if (state === this.#state) return
    this.#state = state
    this.#events.state.emit(state)
  }
}

/** The realtime of any client, whatever channels it declares: for functions and components that do not need their types. */
export interface AnyRealtime extends Omit<Realtime, 'subscribe' | 'map' | 'publish' | 'history'> {
  subscribe(channel: string, options?: SubscribeOptions): Subscription
  map(channel: string, options?: LiveMapOptions): LiveMap
  publish(channel: string, data: unknown): Promise<void>
  history(channel: string, options?: HistoryOptions): Promise<History>
}

/** Identifies the signed-in user; null if there is none. */
const userOf = (session: RealtimeOptions['session']): string | null =>
  session?.state.isSignedIn ? JSON.stringify(session.state.user?.userId ?? null) : null
