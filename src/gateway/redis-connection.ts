import { Redis } from 'ioredis'
import type { Logger } from 'pino'

/** How long Redis may take before it counts as unavailable, in milliseconds. */
export interface RedisTimeouts {
  readonly connect: number
  readonly ready: number
  readonly command: number
}

const DEFAULT_TIMEOUTS: RedisTimeouts = { connect: 2_000, ready: 3_000, command: 500 }

const OPTIONS = {
  // Commands fail at once while there is no connection; they are not queued until a reconnect.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (attempt: number) => Math.min(attempt * 100, 2_000)
} as const

export interface RedisConnectionOptions {
  readonly url: string
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Logged once when an outage begins and once when it ends. */
  readonly messages: { readonly down: string; readonly up: string }
  /** Tests set longer timeouts, because on a loaded machine a healthy Redis may respond late. */
  readonly timeouts?: RedisTimeouts | undefined
}

/** A Redis connection for features with a local fallback: commands fail within half a second and never block requests. */
export class RedisConnection {
  readonly redis: Redis
  readonly #options: RedisConnectionOptions
  readonly #timeouts: RedisTimeouts
  #isDown = false

  constructor(options: RedisConnectionOptions) {
    this.#options = options
    this.#timeouts = options.timeouts ?? DEFAULT_TIMEOUTS
    this.redis = this.#connect({ commandTimeout: this.#timeouts.command })
  }

  /** A second connection: one in subscriber mode accepts no other commands. */
  newSubscriber(): Redis {
    return this.#connect({ autoResubscribe: false })
  }

  get isUp(): boolean {
    return this.redis.status === 'ready'
  }

  /** Resolves when Redis is connected or known to be unavailable. */
  async ready(): Promise<void> {
    if (!this.isUp) {
      await new Promise<unknown>((resolve) => {
        this.redis.once('ready', resolve)
        this.redis.once('close', resolve)
        // A Redis that is loading its data emits neither event, possibly for minutes.
        setTimeout(resolve, this.#timeouts.ready).unref()
      })
    }
    this.#logChange(!this.isUp)
  }

  /** The result of the command, or the fallback if Redis fails or does not respond in time. */
  async run<Result, Fallback>(
    command: (redis: Redis) => Promise<Result>,
    fallback: Fallback
  ): Promise<Result | Fallback> {
    try {
      const result = await command(this.redis)
      this.#logChange(false)
      return result
    } catch (error) {
      this.#logChange(true, error)
      return fallback
    }
  }

  close(): void {
    this.redis.disconnect()
  }

  /** ioredis emits an error for every failed reconnect; outages are logged where a command fails. */
  #connect(options: { commandTimeout: number } | { autoResubscribe: false }): Redis {
    const redis = new Redis(this.#options.url, { ...OPTIONS, connectTimeout: this.#timeouts.connect, ...options })
    return redis.on('error', () => undefined)
  }

  #logChange(isDown: boolean, error?: unknown): void {
    if (isDown === this.#isDown) return
    this.#isDown = isDown
    const { log, messages } = this.#options
    if (isDown) log.warn({ err: error }, messages.down)
    else log.info(messages.up)
  }
}
