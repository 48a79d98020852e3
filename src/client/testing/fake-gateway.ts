import { FakeCookies, type FakeUser } from './fake-cookies.js'
import { type FakeHandler, FakeHttp } from './fake-http.js'
import { type FakeChannel, type FakeChannelOptions, type FakeClientInfo, FakeRelay } from './fake-relay.js'
import { BROKEN, fakeWebSocketClass, type ServerSocket } from './fake-websocket.js'
import { type FakeRpcHandler, RelaySession } from './relay-session.js'

export interface FakeGatewayOptions {
  /** The backend's responses by method and path: `{ 'GET /api/orders/:id': ({ params }) => ({ id: params.id }) }`. */
  readonly routes?: Readonly<Record<string, FakeHandler>>
  /** Signed in from the start. */
  readonly user?: FakeUser
  /** Decides about `POST /api/auth/login`: returns the user, or null to reject. By default every login is rejected. */
  readonly login?: (credentials: Readonly<Record<string, unknown>>) => FakeUser | null
  /** The channels of the relay by name, or by a pattern that ends with `*`. By default every channel exists. */
  readonly channels?: Readonly<Record<string, FakeChannelOptions>>
  /** Handles calls of `realtime.rpc` by method. */
  readonly rpc?: Readonly<Record<string, FakeRpcHandler>>
  /** The data about a user that other clients see in presence, as in the `info` of a relay token; nothing by default. */
  readonly connInfo?: (user: FakeUser) => unknown
  /** The lifetime of sessions; an hour by default. */
  readonly sessionSeconds?: number
  /** The time in milliseconds since 1970, for tests with a clock of their own. */
  readonly now?: () => number
}

/** A request that the fake gateway has received. */
export interface FakeGatewayRequest {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** As it was sent; JSON is a text. */
  readonly body: unknown
}

const ORIGIN = 'http://gateway.test'
const HOUR_SECONDS = 3600

/**
 * A gateway, its backend and its relay in memory, for component tests in any runner: `createClient(gateway.options)` connects
 * a client to it. It has one browser, the cookies of `options.cookies`, and opens no port.
 */
export class FakeGateway {
  /** All requests so far. */
  readonly requests: FakeGatewayRequest[] = []
  readonly WebSocket: ReturnType<typeof fakeWebSocketClass>
  readonly #cookies: FakeCookies
  readonly #http: FakeHttp
  readonly #relay: FakeRelay
  readonly #sockets = new Set<ServerSocket>()
  readonly #tokens = new Map<string, FakeUser>()
  readonly #sessionSeconds: number
  readonly #connInfo: (user: FakeUser) => unknown
  #clients = 0

  constructor(options: FakeGatewayOptions = {}) {
    const { routes = {}, user, login = () => null, channels = null, rpc = {}, now = () => Date.now() } = options
    this.#sessionSeconds = options.sessionSeconds ?? HOUR_SECONDS
    this.#connInfo = options.connInfo ?? (() => undefined)
    this.#cookies = new FakeCookies(now)
    this.#relay = new FakeRelay(channels)
    this.#http = new FakeHttp({
      cookies: this.#cookies,
      routes,
      login,
      sessionSeconds: this.#sessionSeconds,
      negotiate: (user) => ({ url: `${ORIGIN.replace('http', 'ws')}/connection/websocket`, token: this.#tokenOf(user) })
    })
    this.WebSocket = fakeWebSocketClass((socket) => this.#accept(socket, rpc))
    if (user !== undefined) this.signIn(user)
  }

  /** Options for `createClient`. */
  get options() {
    return {
      fetch: this.fetch,
      cookies: (): string => this.#cookies.readable(),
      realtime: { client: { websocket: this.WebSocket, minReconnectDelay: 1, maxReconnectDelay: 20 } }
    }
  }

  /** The `fetch` of the browser. Relative addresses are those of the gateway. */
  readonly fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const { signal } = init
    if (signal?.aborted) throw signal.reason
    const url = new URL(input instanceof Request ? input.url : input, ORIGIN)
    const headers = new Headers(init.headers)
    const body = init.body ?? null
    const request = { method: init.method ?? 'GET', path: url.pathname, query: url.searchParams, headers }
    this.requests.push({
      ...request,
      query: Object.fromEntries(url.searchParams),
      headers: Object.fromEntries(headers),
      body
    })
    const response = this.#http.respond(request, body)
    return signal ? Promise.race([response, rejectedBy(signal)]) : response
  }

  /** Starts a session, as a login in another tab does. A client that exists already notices it after `session.refresh()`. */
  signIn(user: FakeUser): void {
    this.#cookies.signIn(user, this.#sessionSeconds)
  }

  /** Ends the session, as a logout in another tab does. */
  signOut(): void {
    this.#cookies.signOut()
  }

  /** Publishes as the backend does. */
  publish(channel: string, data: unknown, { tags }: { readonly tags?: Readonly<Record<string, string>> } = {}): void {
    this.#channel(channel).publish({ data, ...(tags && { tags }) })
  }

  /** Subscribes another client of a user to a channel, for presence. Returns a function that unsubscribes it. */
  join(channel: string, user: FakeUser): () => void {
    const found = this.#channel(channel)
    const subscriber = { info: this.#infoOf(user, this.#newClientId()), push: () => undefined }
    found.join(subscriber, { receivesJoinLeave: false })
    found.announceJoin(subscriber)
    return () => found.leave(subscriber)
  }

  #channel(name: string): FakeChannel {
    const channel = this.#relay.channel(name)
    if (channel === null) throw new TypeError(`the option "channels" has no pattern for ${name}`)
    return channel
  }

  #infoOf(user: FakeUser, client: string): FakeClientInfo {
    const info = this.#connInfo(user)
    return { user: String(user.userId), client, ...(info !== undefined && { conn_info: info }) }
  }

  #newClientId(): string {
    this.#clients += 1
    return `client-${this.#clients}`
  }

  /** The number of connections that are subscribed to the channel. */
  subscribers(channel: string): number {
    return this.#relay.channel(channel)?.subscribers.size ?? 0
  }

  /** The number of connections to the relay. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Breaks all connections to the relay, or closes them with a code of the relay. Clients reconnect unless the code forbids it. */
  disconnect(code: number = BROKEN, reason = ''): void {
    for (const socket of this.#sockets) socket.close(code, reason)
  }

  /** Ends all connections for good. */
  close(): void {
    this.#tokens.clear()
    this.disconnect(3503, 'force disconnect')
  }

  #tokenOf(user: FakeUser): string {
    const token = `relay-token-${this.#tokens.size + 1}`
    this.#tokens.set(token, user)
    return token
  }

  #accept(socket: ServerSocket, rpc: Readonly<Record<string, FakeRpcHandler>>) {
    this.#sockets.add(socket)
    const clientId = this.#newClientId()
    const session = new RelaySession({
      relay: this.#relay,
      rpc,
      userOfToken: (token) => this.#tokens.get(token) ?? null,
      infoOf: (user) => this.#infoOf(user, clientId),
      send: (message) => socket.send(message)
    })
    return {
      receive: (frame: string) => session.receive(frame),
      end: () => {
        this.#sockets.delete(socket)
        session.end()
      }
    }
  }
}

export const createFakeGateway = (options: FakeGatewayOptions = {}): FakeGateway => new FakeGateway(options)

const rejectedBy = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
