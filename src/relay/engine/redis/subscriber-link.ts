import { Command, type Redis } from 'ioredis'
import type { MaybePromise } from '../../core/broker.js'
import { EngineError } from '../../core/broker.js'
import { addressName, type RedisAddress, topicEnd } from './address.js'
import { WriteBatcher } from './command-link.js'
import { inBatches } from './engine.js'
import { faultText, openConnection } from './shard.js'

/** A client that comes back at once, as at a reload of its page, finds its channel still subscribed. */
const LEAVE_DELAY_MS = 1_000
const MAX_NAMES = 512

export interface SubscriberLinkParts {
  /** Whether names are of a cluster's slots, which takes other commands. */
  readonly isSharded: boolean
  message(name: string, message: string): void
  /** All that was subscribed is so again; what was sent meanwhile is lost. */
  restored(names: readonly string[]): void
  lost(cause: Error): void
  /** In a cluster: names of this server belong to another one now. */
  moved(): void
}

/** Subscribed, or about to be: then `active` settles when it is. */
interface Wanted {
  active: Promise<void> | null
}

/** One server's connection for subscriptions. */
export class SubscriberLink {
  readonly #address: RedisAddress
  readonly #parts: SubscriberLinkParts
  readonly #redis: Redis
  readonly #cork: WriteBatcher
  readonly #end: string
  readonly #wanted = new Map<string, Wanted>()
  #asked: { readonly name: string; readonly done: () => void; readonly failed: (error: Error) => void }[] = []
  /** Nobody listens to these any more. */
  readonly #leaving = new Set<string>()
  #leaveTimer: NodeJS.Timeout | null = null
  #isOpen = false
  #lastError: Error | null = null

  constructor(address: RedisAddress, parts: SubscriberLinkParts) {
    this.#address = address
    this.#parts = parts
    this.#redis = openConnection(address, 'subscriptions')
    this.#cork = new WriteBatcher(this.#redis)
    this.#redis.on('ready', () => void this.#restore())
    this.#redis.on('close', () => this.#close())
    this.#redis.on('error', (error: Error) => {
      this.#lastError = error
    })
    this.#end = topicEnd(address)
    this.#redis.on(parts.isSharded ? 'smessage' : 'message', (topic: string, message: string) =>
      parts.message(topic.slice(0, topic.length - this.#end.length), message)
    )
    this.#redis.on('moved', parts.moved)
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  get names(): Iterable<string> {
    return this.#wanted.keys()
  }

  /** Whether Redis has confirmed the subscription on the present connection. */
  isSubscribed(name: string): boolean {
    return this.#isOpen && this.#wanted.get(name)?.active === null
  }

  /** Immediate if the name is still subscribed; fails while the connection is down, even for a name that will be restored. */
  subscribe(name: string): MaybePromise<void> {
    if (!this.#isOpen) return Promise.reject(new EngineError(`Redis at ${addressName(this.#address)} is away`))
    this.#leaving.delete(name)
    const known = this.#wanted.get(name)
    if (known !== undefined) return known.active ?? undefined
    const wanted: Wanted = { active: null }
    this.#wanted.set(name, wanted)
    if (this.#asked.length === 0) setImmediate(() => this.#subscribeAsked())
    wanted.active = new Promise<void>((done, failed) => {
      this.#asked.push({ name, done, failed })
    }).then(
      () => {
        wanted.active = null
      },
      (error: Error) => {
        if (this.#wanted.get(name) === wanted) this.#wanted.delete(name)
        throw new EngineError(faultText(this.#address, error))
      }
    )
    return wanted.active
  }

  unsubscribe(name: string): void {
    if (!this.#wanted.has(name)) return
    this.#leaving.add(name)
    this.#leaveTimer ??= setTimeout(() => this.#leave(), LEAVE_DELAY_MS).unref()
  }

  /** Without delay and without a word: it is another server's from now on. */
  forget(name: string): void {
    this.#wanted.delete(name)
    this.#leaving.delete(name)
  }

  reconnect(): void {
    this.#redis.disconnect(true)
  }

  close(): void {
    if (this.#leaveTimer !== null) clearTimeout(this.#leaveTimer)
    this.#redis.disconnect()
  }

  #subscribeAsked(): void {
    const asked = this.#asked
    this.#asked = []
    for (const batch of this.#batches(asked)) {
      this.#send(
        'subscribe',
        batch.map(({ name }) => name)
      ).then(
        () => {
          for (const { done } of batch) done()
        },
        (error: Error) => {
          if (isMoved(error)) this.#parts.moved()
          for (const { failed } of batch) failed(error)
        }
      )
    }
  }

  async #restore(): Promise<void> {
    for (const name of this.#leaving) this.forget(name)
    // Those that are still asked for have failed with the old connection.
    const names = [...this.#wanted].filter(([, { active }]) => active === null).map(([name]) => name)
    try {
      await Promise.all(this.#batches(names).map((batch) => this.#send('subscribe', batch)))
      this.#isOpen = true
      this.#lastError = null
      this.#parts.restored(names)
    } catch (error) {
      this.#lastError = error as Error
      if (isMoved(this.#lastError)) this.#parts.moved()
      this.reconnect()
    }
  }

  #leave(): void {
    this.#leaveTimer = null
    const names = [...this.#leaving]
    for (const name of names) this.forget(name)
    if (!this.#isOpen) return
    for (const batch of this.#batches(names)) this.#send('unsubscribe', batch).catch(() => undefined)
  }

  #send(name: 'subscribe' | 'unsubscribe', names: readonly string[]): Promise<unknown> {
    this.#cork.hold()
    const topics = names.map((each) => each + this.#end)
    const command = new Command(this.#parts.isSharded ? `s${name}` : name, topics, { replyEncoding: 'utf8' })
    return this.#redis.sendCommand(command) as Promise<unknown>
  }

  /** A sharded one takes names of one slot only; they leave in one write all the same. */
  #batches<T>(all: readonly T[]): (readonly T[])[] {
    return inBatches(all, this.#parts.isSharded ? 1 : MAX_NAMES)
  }

  #close(): void {
    this.#isOpen = false
    this.#parts.lost(this.#lastError ?? new Error('the connection was closed'))
    this.#lastError = null
  }
}

const isMoved = ({ message }: Error): boolean => /^(MOVED|CLUSTERDOWN)/.test(message)
