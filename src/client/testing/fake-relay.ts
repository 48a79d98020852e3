import type { FakeUser } from './fake-cookies.js'

/** The rules of a channel of the fake relay; everything is permitted by default. */
export interface FakeChannelOptions {
  /** The number of publications that are kept, for `history` and `recover`; 0 for none. Default: 100. */
  readonly historySize?: number
  /** Whether subscribers may ask for presence, and receive joins and leaves. */
  readonly presence?: boolean
  /** Whether clients may publish. */
  readonly publish?: boolean
  /** Whether this user may subscribe. */
  readonly subscribe?: (user: FakeUser, channel: string) => boolean
}

export interface FakePublication {
  readonly data: unknown
  readonly offset?: number
  readonly tags?: Readonly<Record<string, string>>
  /** The client that published; absent for the backend. */
  readonly info?: FakeClientInfo
}

export interface FakeClientInfo {
  readonly user: string
  readonly client: string
  readonly conn_info?: unknown
}

/** Receives what the relay sends to one connection. */
export interface FakeSubscriber {
  readonly info: FakeClientInfo
  push(message: object): void
}

export interface SubscriberOptions {
  readonly receivesJoinLeave: boolean
}

const HISTORY_SIZE = 100

export class FakeChannel {
  readonly name: string
  readonly options: FakeChannelOptions
  readonly epoch = 'fake'
  readonly subscribers = new Map<FakeSubscriber, SubscriberOptions>()
  #history: FakePublication[] = []
  #offset = 0

  constructor(name: string, options: FakeChannelOptions) {
    this.name = name
    this.options = options
  }

  get offset(): number {
    return this.#offset
  }

  get hasHistory(): boolean {
    return (this.options.historySize ?? HISTORY_SIZE) > 0
  }

  /** The publications after an offset; null if some of them are not kept. */
  after(offset: number): readonly FakePublication[] | null {
    const isKept = offset <= this.#offset && this.#offset - offset <= this.#history.length
    return isKept ? this.#history.slice(this.#history.length - (this.#offset - offset)) : null
  }

  /** Oldest first. */
  get history(): readonly FakePublication[] {
    return this.#history
  }

  publish(publication: Omit<FakePublication, 'offset'>): void {
    let published: FakePublication = publication
    if (this.hasHistory) {
      this.#offset += 1
      published = { ...publication, offset: this.#offset }
      this.#history = [...this.#history, published].slice(-(this.options.historySize ?? HISTORY_SIZE))
    }
    for (const subscriber of this.subscribers.keys()) subscriber.push({ channel: this.name, pub: published })
  }

  join(subscriber: FakeSubscriber, options: SubscriberOptions): void {
    this.subscribers.set(subscriber, options)
  }

  /** After the reply to the subscriber, which receives its own join too. */
  announceJoin(subscriber: FakeSubscriber): void {
    this.#announce('join', subscriber)
  }

  leave(subscriber: FakeSubscriber): void {
    if (this.subscribers.delete(subscriber)) this.#announce('leave', subscriber)
  }

  #announce(kind: 'join' | 'leave', { info }: FakeSubscriber): void {
    if (this.options.presence === false) return
    for (const [subscriber, { receivesJoinLeave }] of this.subscribers)
      if (receivesJoinLeave) subscriber.push({ channel: this.name, [kind]: { info } })
  }
}

/** The channels of the fake relay. */
export class FakeRelay {
  readonly #rules: Readonly<Record<string, FakeChannelOptions>> | null
  readonly #channels = new Map<string, FakeChannel>()

  /** Without rules every channel exists. A pattern may end with `*`. */
  constructor(rules: Readonly<Record<string, FakeChannelOptions>> | null) {
    this.#rules = rules
  }

  /** Null if no pattern matches. */
  channel(name: string): FakeChannel | null {
    const known = this.#channels.get(name)
    if (known !== undefined) return known
    const options = this.#rules === null ? {} : this.#rulesOf(name, this.#rules)
    if (options === undefined || name === '') return null
    const channel = new FakeChannel(name, options)
    this.#channels.set(name, channel)
    return channel
  }

  #rulesOf(name: string, rules: Readonly<Record<string, FakeChannelOptions>>): FakeChannelOptions | undefined {
    const matches = (pattern: string): boolean =>
      pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
    return Object.entries(rules).find(([pattern]) => matches(pattern))?.[1]
  }
}
