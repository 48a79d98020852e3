import { isIP } from 'node:net'
import { Redis } from 'ioredis'
import type { Log } from '../../core/relay.js'
import type { EngineMetrics } from '../engine.js'
import { addressName, type RedisAddress, topicEnd } from './address.js'
import { CommandLink } from './command-link.js'
import type { Ledger } from './ledger.js'
import { SubscriberLink, type SubscriberLinkParts } from './subscriber-link.js'

const PULSE_MS = 1_000
/** A link to which so many of its own messages did not come back is taken for deaf, however healthy it looks. */
const DEAF_AFTER = 4
/** A Redis that refuses everything is told now and then, not every time. */
const TELL_EVERY_MS = 10_000

export interface ShardParts extends Pick<SubscriberLinkParts, 'isSharded' | 'message' | 'restored' | 'moved'> {
  readonly address: RedisAddress
  readonly log: Log
  readonly watch: EngineMetrics
  readonly ledger: Ledger | null
  /** Where the shard tells itself something; null where no name is its own. */
  pulseName(): string | null
  /** It has come back, or has gone. */
  changed(): void
}

/** One Redis server: a connection for commands, one for subscriptions, and whether both do what they should. */
export class Shard {
  readonly name: string
  readonly address: RedisAddress
  /** What publishes here. */
  readonly publishCommand: 'PUBLISH' | 'SPUBLISH'
  /** What the names of messages end with here. */
  readonly topicEnd: string
  readonly commands: CommandLink
  readonly subscriptions: SubscriberLink
  readonly #parts: ShardParts
  readonly #pulse: NodeJS.Timeout
  #pulseName: string | null = null
  /** Pulses that Redis has taken since the last one came back. Not a time: this process may have stood still itself. */
  #unheard = 0
  #isReady = false
  #wasReady = false
  #isNewGeneration = false
  #toldAt = 0
  /** Why it is away. */
  fault: Error | null = null

  constructor(parts: ShardParts) {
    this.#parts = parts
    this.address = parts.address
    this.name = addressName(parts.address)
    this.publishCommand = parts.isSharded ? 'SPUBLISH' : 'PUBLISH'
    this.topicEnd = topicEnd(parts.address)
    this.commands = new CommandLink(parts.address, {
      publishCommand: this.publishCommand,
      topicEnd: this.topicEnd,
      ledger: parts.ledger,
      opened: (isNewGeneration) => {
        this.#isNewGeneration = isNewGeneration
        this.#look()
      },
      lost: (cause) => this.#lost(cause),
      refused: (cause) => this.#refused(cause)
    })
    this.subscriptions = new SubscriberLink(parts.address, {
      isSharded: parts.isSharded,
      message: (name, message) => {
        if (name === this.#pulseName) this.#unheard = 0
        else parts.message(name, message)
      },
      restored: (names) => {
        this.#unheard = 0
        parts.restored(names)
        this.#look()
      },
      lost: (cause) => this.#lost(cause),
      moved: parts.moved
    })
    this.#pulse = setInterval(() => this.#beat(), PULSE_MS).unref()
  }

  get isReady(): boolean {
    return this.#isReady
  }

  /** Tells whoever has subscribed to the name here. */
  publish(name: string, message: string): Promise<unknown> {
    return this.commands.send(this.publishCommand, [name + this.topicEnd, message])
  }

  close(): void {
    clearInterval(this.#pulse)
    this.#isReady = false
    this.#wasReady = false
    this.commands.close()
    this.subscriptions.close()
  }

  #look(): void {
    if (this.#isReady || !this.commands.isOpen || !this.subscriptions.isOpen) return
    this.#isReady = true
    this.fault = null
    // Where the streams are not kept, all of them begin a new epoch.
    const areStreamsKept = !this.#isNewGeneration
    if (this.#wasReady) this.#parts.log.info({ redis: this.name, areStreamsKept }, 'Redis is back')
    this.#wasReady = true
    this.#beat()
    this.#parts.changed()
  }

  #lost(cause: Error): void {
    this.fault = cause
    if (!this.#isReady) return
    this.#isReady = false
    this.#parts.watch.engineLost()
    this.#parts.log.error({ redis: this.name, cause: cause.message }, 'Redis is away')
    this.#parts.changed()
  }

  #refused(cause: Error): void {
    this.#parts.watch.engineError()
    const now = performance.now()
    if (this.#toldAt !== 0 && now - this.#toldAt < TELL_EVERY_MS) return
    this.#toldAt = now
    this.#parts.log.error({ redis: this.name, cause: cause.message }, 'Redis refuses commands')
  }

  #beat(): void {
    if (!this.#isReady) return
    const name = this.#parts.pulseName()
    if (name !== this.#pulseName) {
      if (this.#pulseName !== null) this.subscriptions.unsubscribe(this.#pulseName)
      this.#pulseName = name
      this.#unheard = 0
    }
    if (name === null) return
    const untold = (): void => undefined
    void Promise.resolve(this.subscriptions.subscribe(name)).catch(untold)
    this.commands.beat(name).then(() => this.#pulsed(), untold)
  }

  #pulsed(): void {
    if (!this.#isReady || ++this.#unheard < DEAF_AFTER) return
    this.#unheard = 0
    this.#lost(new Error('subscriptions hear nothing'))
    this.subscriptions.reconnect()
  }
}

/** What a server says about itself. */
export interface ServerInfo {
  /** A new one every time the server is started. */
  readonly run: string
  readonly isCluster: boolean
  /** Why it cannot serve us; '' where it can. */
  readonly refusal: string
}

/** Of the text that INFO is answered with. */
export const serverInfo = (text: string): ServerInfo => {
  const fields = new Map(
    text.split('\r\n').map((line): [string, string] => {
      const [name = '', value = ''] = line.split(':', 2)
      return [name, value]
    })
  )
  return {
    run: fields.get('run_id') ?? '',
    isCluster: fields.get('redis_mode') === 'cluster' || fields.get('cluster_enabled') === '1',
    refusal:
      fields.get('loading') === '1'
        ? 'it is still loading its data'
        : fields.get('role') === 'slave'
          ? 'it is a replica, which takes no publications'
          : ''
  }
}

/** A Redis that has not answered for so long is taken for gone: whoever waits is told, and it is dialled anew. */
export const ANSWER_WITHIN_MS = 2_000
const CONNECT_WITHIN_MS = 2_000
const RETRY_MS = 100
const MAX_RETRY_MS = 1_000

/** A connection that never queues, repeats or resubscribes by itself: what becomes of a loss is decided by us. */
export const openConnection = (address: RedisAddress, purpose: string): Redis => {
  const { host, port, username, password, db, isTls } = address
  return new Redis({
    host,
    port,
    db,
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    // An address is no name that a server could have several of.
    ...(isTls ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
    connectionName: `gatehouse-relay-${purpose}`,
    connectTimeout: CONNECT_WITHIN_MS,
    socketTimeout: ANSWER_WITHIN_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    // Not all at the same moment when a Redis comes back to many relays.
    retryStrategy: (attempt) => Math.min(attempt * RETRY_MS, MAX_RETRY_MS) * (0.5 + Math.random() / 2)
  })
}

/** Without a password, and without what it was asked for. */
export const faultText = (address: RedisAddress, error: unknown): string =>
  `Redis at ${addressName(address)}: ${error instanceof Error ? error.message : String(error)}`
