import { Redis } from 'ioredis'
import type { Logger } from 'pino'

const COMMAND_TIMEOUT_MS = 500
const CONNECT_TIMEOUT_MS = 2_000
const READY_TIMEOUT_MS = 3_000

const OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  // Nobody waits for a reconnect: without a connection the command fails at once.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (attempt: number) => Math.min(attempt * 100, 2_000)
} as const

export interface RedisLinkOptions {
  readonly url: string
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** What the log says of an outage, once at its beginning and once at its end. */
  readonly saidWhenAway: string
  readonly saidWhenBack: string
}

/** A connection to Redis for what goes on without it: a Redis that is away or hangs holds nobody up for long. */
export class RedisLink {
  readonly redis: Redis
  readonly #options: RedisLinkOptions
  #away = false

  constructor(options: RedisLinkOptions) {
    this.#options = options
    this.redis = quiet(new Redis(options.url, { ...OPTIONS, commandTimeout: COMMAND_TIMEOUT_MS }))
  }

  /** A second connection, for one that listens can do nothing else. */
  subscriber(): Redis {
    return quiet(new Redis(this.#options.url, { ...OPTIONS, autoResubscribe: false }))
  }

  get isUp(): boolean {
    return this.redis.status === 'ready'
  }

  /** Resolves when Redis is there or has turned out to be away. */
  async ready(): Promise<void> {
    if (!this.isUp) {
      await new Promise<unknown>((resolve) => {
        this.redis.once('ready', resolve)
        this.redis.once('close', resolve)
        // While Redis loads its data it is neither, for minutes perhaps.
        setTimeout(resolve, READY_TIMEOUT_MS).unref()
      })
    }
    this.#tell(!this.isUp)
  }

  /** What the command says, or something else where Redis does not answer. */
  async orElse<Result, Other>(command: (redis: Redis) => Promise<Result>, other: Other): Promise<Result | Other> {
    try {
      const result = await command(this.redis)
      this.#tell(false)
      return result
    } catch (error) {
      this.#tell(true, error)
      return other
    }
  }

  close(): void {
    this.redis.disconnect()
  }

  #tell(away: boolean, error?: unknown): void {
    if (away === this.#away) return
    this.#away = away
    const { log, saidWhenAway, saidWhenBack } = this.#options
    if (away) log.warn({ err: error }, saidWhenAway)
    else log.info(saidWhenBack)
  }
}

/** ioredis complains at every attempt to reconnect; the outage itself is told where a command meets it. */
const quiet = (redis: Redis): Redis => redis.on('error', () => undefined)
