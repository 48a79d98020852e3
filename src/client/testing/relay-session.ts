import { fieldsOf } from '../fields-of.js'
import type { FakeUser } from './fake-cookies.js'
import type { FakeChannel, FakeClientInfo, FakePublication, FakeRelay, FakeSubscriber } from './fake-relay.js'

/** Handles calls of `realtime.rpc` for one method. Throws a `FakeRpcError` to reject the call. */
export type FakeRpcHandler = (data: unknown, user: FakeUser) => unknown

/** An error reply of the relay. */
export class FakeRpcError extends Error {
  override readonly name = 'FakeRpcError'
  readonly code: number
  readonly temporary: boolean

  constructor(code: number, message: string, { temporary = false } = {}) {
    super(message)
    this.code = code
    this.temporary = temporary
  }
}

/** The relay closes the connection. */
export class Close {
  readonly code: number
  readonly reason: string

  constructor(code: number, reason: string) {
    this.code = code
    this.reason = reason
  }
}

const permissionDenied = (): FakeRpcError => new FakeRpcError(103, 'permission denied')
const notAvailable = (detail = ''): FakeRpcError =>
  new FakeRpcError(108, detail === '' ? 'not available' : `not available: ${detail}`)

export interface RelaySessionOptions {
  readonly relay: FakeRelay
  readonly rpc: Readonly<Record<string, FakeRpcHandler>>
  readonly userOfToken: (token: string) => FakeUser | null
  readonly infoOf: (user: FakeUser) => FakeClientInfo
  readonly send: (message: object) => void
}

type Fields = Readonly<Record<string, unknown>>
type Command = (request: Fields, user: FakeUser) => unknown

/** One connection to the fake relay: reads commands of the JSON protocol and sends replies and pushes. */
export class RelaySession implements FakeSubscriber {
  readonly #options: RelaySessionOptions
  readonly #channels = new Set<FakeChannel>()
  #user: FakeUser | null = null
  /** The channel that the current command has subscribed to. */
  #joined: FakeChannel | null = null
  info: FakeClientInfo = { user: '', client: '' }

  constructor(options: RelaySessionOptions) {
    this.#options = options
  }

  push(message: object): void {
    this.#options.send({ push: message })
  }

  /** Executes the commands of one frame in order. Resolves to a `Close` if the relay closes the connection. */
  async receive(frame: string): Promise<Close | null> {
    for (const line of frame.split('\n').filter((line) => line !== '')) {
      const closed = await this.#execute(parsed(line))
      if (closed !== null) return closed
    }
    return null
  }

  /** The connection ended. */
  end(): void {
    for (const channel of this.#channels) channel.leave(this)
    this.#channels.clear()
  }

  async #execute(command: Fields | null): Promise<Close | null> {
    if (command === null) return new Close(3501, 'bad request')
    const { id, ...requests } = command
    const [entry] = Object.entries(requests)
    // A pong.
    if (entry === undefined) return null
    const [method, request] = entry
    try {
      const result = await this.#run(method, fieldsOf(request))
      if (result instanceof Close) return result
      this.#options.send({ id, [method]: result })
      this.#joined?.announceJoin(this)
      this.#joined = null
    } catch (error) {
      // A handler that fails is a backend that does not respond.
      const { code, message, temporary } =
        error instanceof FakeRpcError
          ? error
          : new FakeRpcError(100, `internal server error: ${error}`, { temporary: true })
      this.#options.send({ id, error: { code, message, ...(temporary && { temporary }) } })
    }
    return null
  }

  #run(method: string, request: Fields): unknown {
    if (method === 'connect') return this.#connect(request)
    if (this.#user === null) return new Close(3501, 'bad request')
    const command = this.#commands[method]
    if (command === undefined) throw notAvailable(`the fake relay has no command ${method}`)
    return command(request, this.#user)
  }

  readonly #commands: Readonly<Record<string, Command>> = {
    subscribe: (request, user) => this.#subscribe(request, user),
    unsubscribe: (request) => this.#unsubscribe(request),
    publish: (request) => this.#publish(request),
    presence: (request) => ({
      presence: Object.fromEntries(this.#present(request).map((info) => [info.client, info]))
    }),
    presence_stats: (request) => {
      const present = this.#present(request)
      return { num_clients: present.length, num_users: new Set(present.map(({ user }) => user)).size }
    },
    history: (request) => this.#history(request),
    refresh: ({ token }) =>
      this.#options.userOfToken(String(token)) === null
        ? new Close(3500, 'invalid token')
        : { client: this.info.client, version: VERSION },
    rpc: async ({ method, data }, user) => {
      const handler = this.#options.rpc[String(method)]
      if (handler === undefined) throw notAvailable()
      return { data: await handler(data, user) }
    },
    send: () => new Close(3508, 'not available')
  }

  #connect({ token }: Fields): unknown {
    const user = this.#options.userOfToken(String(token))
    if (user === null) return new Close(3500, 'invalid token')
    this.#user = user
    this.info = this.#options.infoOf(user)
    return { client: this.info.client, version: VERSION }
  }

  #subscribe(request: Fields, user: FakeUser): unknown {
    const channel = this.#channelOf(request)
    if (request.type !== undefined && request.type !== 0) throw notAvailable('the fake relay has no maps')
    if (request.tf !== undefined) throw notAvailable('the fake relay has no tag filters')
    if (channel.options.subscribe?.(user, channel.name) === false) throw permissionDenied()
    if (this.#channels.has(channel)) throw new FakeRpcError(105, 'already subscribed')
    this.#channels.add(channel)
    const recovered = request.recover === true ? this.#recovered(channel, request) : {}
    channel.join(this, { receivesJoinLeave: request.join_leave === true })
    this.#joined = channel
    if (!channel.hasHistory) return {}
    return { recoverable: true, positioned: true, epoch: channel.epoch, offset: channel.offset, ...recovered }
  }

  #recovered(channel: FakeChannel, { epoch, offset }: Fields): object {
    const missed = epoch === channel.epoch ? channel.after(Number(offset ?? 0)) : null
    return { was_recovering: true, recovered: missed !== null, publications: missed ?? [] }
  }

  #unsubscribe(request: Fields): object {
    const channel = this.#channelOf(request)
    channel.leave(this)
    this.#channels.delete(channel)
    return {}
  }

  #publish(request: Fields): object {
    const channel = this.#channelOf(request)
    if (channel.options.publish === false) throw permissionDenied()
    if (request.data === undefined) throw new FakeRpcError(107, 'bad request')
    channel.publish({ data: request.data, info: this.info })
    return {}
  }

  #present(request: Fields): readonly FakeClientInfo[] {
    const channel = this.#channelOf(request)
    if (channel.options.presence === false) throw notAvailable()
    return [...channel.subscribers.keys()].map(({ info }) => info)
  }

  #history(request: Fields): object {
    const channel = this.#channelOf(request)
    if (!channel.hasHistory) throw notAvailable()
    const { offset: sinceOffset, epoch: sinceEpoch } = fieldsOf(request.since)
    if (sinceEpoch !== undefined && sinceEpoch !== channel.epoch) throw new FakeRpcError(112, 'unrecoverable position')
    const since = sinceOffset === undefined ? null : Number(sinceOffset)
    const kept = channel.history.filter(({ offset = 0 }) => isAfter(offset, since, request.reverse === true))
    const ordered = request.reverse === true ? kept.toReversed() : kept
    const limit = Number(request.limit ?? 0)
    const publications: readonly FakePublication[] = limit < 0 ? ordered : ordered.slice(0, limit)
    return { publications, epoch: channel.epoch, offset: channel.offset }
  }

  #channelOf({ channel: name }: Fields): FakeChannel {
    const channel = this.#options.relay.channel(typeof name === 'string' ? name : '')
    if (channel === null) throw new FakeRpcError(102, 'unknown channel')
    return channel
  }
}

const VERSION = 'gatehouse-client/testing'

const isAfter = (offset: number, since: number | null, isReverse: boolean): boolean => {
  if (since === null) return true
  return isReverse ? offset < since : offset > since
}

const parsed = (line: string): Fields | null => {
  try {
    const value: unknown = JSON.parse(line)
    // The fields of a command are checked one by one.
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null
  } catch {
    return null
  }
}
