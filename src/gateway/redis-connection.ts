import { EventEmitter, once } from 'node:events'
import { Cluster, Redis } from 'ioredis'
import type { Logger } from 'pino'
import { connectionOptions, parseRedisUrl, type RedisAddress, type RedisServer } from '../shared/redis-address.js'
import { reconnectToMaster, watchMaster } from '../shared/sentinel-watch.js'

/** How long Redis may take before it counts as unavailable, in milliseconds. */
export interface RedisTimeouts {
  readonly connect: number
  readonly ready: number
  readonly command: number
}

export interface RedisConfig {
  /** Validated: see `redisUrlError`. Of several independent servers the first is used. */
  readonly url: string
  readonly timeouts: RedisTimeouts
}

const RETRY_MS = 100
const MAX_RETRY_MS = 2_000
const retryDelayMs = (attempt: number): number => Math.min(attempt * RETRY_MS, MAX_RETRY_MS)

const OPTIONS = {
  // Commands fail at once while there is no connection; they are not queued until a reconnect.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  // A master that has become a replica accepts no writes.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY')
} as const

/** The commands of one server or of a Redis Cluster. */
export type RedisClient = Redis | Cluster

export interface RedisConnectionOptions {
  readonly redis: RedisConfig
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Logged once when an outage begins and once when it ends. */
  readonly messages: { readonly down: string; readonly up: string }
}

export interface RedisSubscription {
  readonly channel: string
  message(text: string): void
  /** Called each time the subscription begins, first and after every loss of its connection. Earlier messages may be missed. */
  subscribed(): void
}

/** A Redis connection for features with a local fallback: commands fail within half a second and never block requests. */
export class RedisConnection {
  readonly #options: RedisConnectionOptions
  readonly #timeouts: RedisTimeouts
  /** Emits `up` when commands can be sent, and `down` when an attempt to connect has failed or the connection is lost. */
  readonly #events = new EventEmitter()
  readonly #closing = new AbortController()
  readonly #clients = new Set<RedisClient>()
  /** Null until it is known whether the servers belong to a Redis Cluster. */
  #client: RedisClient | null = null
  readonly #opened: Promise<readonly RedisAddress[]>
  #isDown = false
  #stopWatching: (() => void) | null = null

  constructor(options: RedisConnectionOptions) {
    this.#options = options
    this.#timeouts = options.redis.timeouts
    this.#opened = this.#open()
  }

  get isUp(): boolean {
    return this.#client?.status === 'ready'
  }

  /** Calls the listener each time commands can be sent again. */
  onUp(listener: () => void): void {
    this.#events.on('up', listener)
  }

  /** Resolves when Redis is connected or known to be unavailable. */
  async ready(): Promise<void> {
    if (!this.isUp) {
      // A Redis that is loading its data emits neither event, possibly for minutes.
      const signal = AbortSignal.timeout(this.#timeouts.ready)
      await Promise.race(['up', 'down'].map((event) => once(this.#events, event, { signal }).catch(() => undefined)))
    }
    this.#logChange(!this.isUp)
  }

  /** Rejects if Redis is unavailable, fails or does not respond in time. */
  async send<Result>(command: (redis: RedisClient) => Promise<Result>): Promise<Result> {
    if (this.#client === null) throw new Error('Redis is not connected')
    return command(this.#client)
  }

  /** The result of the command, or the fallback if `send` would reject. */
  async run<Result, Fallback>(
    command: (redis: RedisClient) => Promise<Result>,
    fallback: Fallback
  ): Promise<Result | Fallback> {
    try {
      const result = await this.send(command)
      this.#logChange(false)
      return result
    } catch (error) {
      this.#logChange(true, error)
      return fallback
    }
  }

  /** Receives the messages of a channel over a connection of its own, because a subscribed one accepts no other commands. */
  async subscribe(subscription: RedisSubscription): Promise<void> {
    const addresses = await this.#opened
    const connect = (attempt: number): void => {
      const address = addresses[attempt % addresses.length]
      if (address === undefined || this.#closing.signal.aborted) return
      // Each attempt uses the next server of a Redis Cluster, where every server has the messages of all.
      const redis = this.#add(new Redis({ ...this.#redisOptions(address), retryStrategy: () => null }))
      let failures = attempt
      redis.on('message', (_channel, text) => subscription.message(text))
      redis.on('ready', () => {
        failures = 0
        redis.subscribe(subscription.channel).then(
          () => subscription.subscribed(),
          () => redis.disconnect()
        )
      })
      redis.on('end', () => {
        this.#clients.delete(redis)
        setTimeout(() => connect(failures + 1), retryDelayMs(failures + 1)).unref()
      })
    }
    connect(0)
  }

  close(): void {
    this.#closing.abort()
    this.#stopWatching?.()
    for (const client of this.#clients) client.disconnect()
  }

  /** Resolves with the addresses in use, once the kind of the servers is known. */
  async #open(): Promise<readonly RedisAddress[]> {
    const addresses = parseRedisUrl(this.#options.redis.url)
    const servers = addresses.filter((address) => address.kind === 'server')
    const isCluster = servers.length > 0 && (await this.#isCluster(servers))
    const [first] = addresses
    if (first === undefined || this.#closing.signal.aborted) return []
    const client = this.#add(isCluster ? this.#newCluster(servers) : new Redis(this.#commandOptions(first)))
    client.on('ready', () => this.#events.emit('up'))
    client.on('close', () => this.#events.emit('down'))
    this.#client = client
    if (first.kind === 'sentinel') this.#stopWatching = watchMaster(first, (host, port) => this.#useMaster(host, port))
    return isCluster ? servers : [first]
  }

  /** Sentinel reports this server as the master. */
  #useMaster(host: string, port: number): void {
    for (const client of this.#clients) if (client instanceof Redis) reconnectToMaster(client, host, port)
  }

  /** Asks the servers in turn until one has responded. */
  async #isCluster(servers: readonly RedisServer[]): Promise<boolean> {
    for (let round = 1; !this.#closing.signal.aborted; round++) {
      for (const server of servers) {
        const answer = await this.#askIsCluster(server)
        if (answer !== null) return answer
      }
      this.#events.emit('down')
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs(round)).unref())
    }
    return false
  }

  /** Null if the server does not respond. */
  async #askIsCluster(server: RedisServer): Promise<boolean | null> {
    const redis = this.#add(
      new Redis({ ...this.#commandOptions(server), lazyConnect: true, retryStrategy: () => null })
    )
    try {
      await redis.connect()
      return (await redis.info('cluster')).includes('cluster_enabled:1')
    } catch (error) {
      // Without permission for INFO, the server is used as a single one.
      return error instanceof Error && error.message.startsWith('NOPERM') ? false : null
    } finally {
      redis.disconnect()
      this.#clients.delete(redis)
    }
  }

  #redisOptions(address: RedisAddress) {
    return {
      ...OPTIONS,
      retryStrategy: retryDelayMs,
      connectTimeout: this.#timeouts.connect,
      ...connectionOptions(address)
    }
  }

  #commandOptions(address: RedisAddress) {
    return { ...this.#redisOptions(address), commandTimeout: this.#timeouts.command }
  }

  #newCluster(servers: readonly RedisServer[]): Cluster {
    const { connect, command } = this.#timeouts
    // An address has at least one server.
    const [{ username, password, isTls }] = servers as readonly [RedisServer]
    return new Cluster(
      servers.map(({ host, port }) => ({ host, port })),
      {
        enableOfflineQueue: false,
        clusterRetryStrategy: retryDelayMs,
        slotsRefreshTimeout: connect,
        redisOptions: {
          connectTimeout: connect,
          commandTimeout: command,
          ...(username === '' ? {} : { username }),
          ...(password === '' ? {} : { password }),
          ...(isTls ? { tls: {} } : {})
        },
        // Certificates are issued for host names, so ioredis must not replace them by addresses.
        ...(isTls ? { dnsLookup: (host, callback) => callback(null, host) } : {})
      }
    )
  }

  /** ioredis emits an error for every failed reconnect; outages are logged where a command fails. */
  #add<Client extends RedisClient>(client: Client): Client {
    client.on('error', () => undefined)
    this.#clients.add(client)
    return client
  }

  #logChange(isDown: boolean, error?: unknown): void {
    if (isDown === this.#isDown) return
    this.#isDown = isDown
    const { log, messages } = this.#options
    if (isDown) log.warn({ err: error }, messages.down)
    else log.info(messages.up)
  }
}
