import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { type Environment, readSettings, SettingsError } from './env.js'
import { type PublishFailure, sendRequest } from './publish-request.js'
import { secret, text } from './setting-kinds.js'

/**
 * Publishes to the relay. Methods never throw and their promises never reject, so that a caller may ignore them: failures are
 * counted and logged. Publications of one channel are sent one after the other, in the order of the calls.
 */
export interface Publisher {
  publish(channel: string, data: unknown, options?: PublishOptions): Promise<PublishOutcome>
  /** The same data to many channels, in one request. */
  broadcast(channels: readonly string[], data: unknown, options?: PublishOptions): Promise<PublishOutcome>
  counts(): PublisherCounts
  /** Rejects new publications and waits for pending ones, at most for the timeout of one request. */
  close(): Promise<void>
}

export interface PublishOptions {
  /**
   * The relay publishes once for each key and channel within five minutes. By default every publication has a key of its own.
   * Pass one that survives a restart of the backend, such as the id of an order, if the backend itself may publish again.
   */
  readonly idempotencyKey?: string
  /** False: one attempt, without a key. For data that the next publication replaces. */
  readonly retry?: boolean
}

/** Whether the relay has accepted the publication on all channels. */
export type PublishOutcome =
  | { readonly isPublished: true }
  | {
      readonly isPublished: false
      /** A code for logs, such as `timeout` or `relay error 102`. The relay may have published after a timeout. */
      readonly reason: string
      /** The channels without the publication, as far as the relay has reported them; otherwise all. */
      readonly channels: readonly string[]
    }

export interface PublisherCounts {
  readonly published: number
  /** Rejected by the relay, or not accepted in time. */
  readonly failed: number
  /** Not sent, because too many were in flight. */
  readonly dropped: number
  /** Requests that were sent again. */
  readonly retried: number
}

export interface PublisherLog {
  warn(fields: object, message: string): void
}

export interface PublisherOptions {
  /** The relay's `/api`. */
  readonly url: string
  readonly apiKey: string
  /** Receives failures, at most one line in 10 s. A pino logger fits. */
  readonly log?: PublisherLog
  /** For one request. */
  readonly timeoutMs?: number
  /** For one publication, with the wait for earlier ones of its channel and all retries; at most four minutes. */
  readonly deadlineMs?: number
  readonly maxInFlight?: number
}

export const publisherSettings = {
  REALTIME_PUBLISH_URL: text('http-url', {
    about: "the relay's publish API, such as http://127.0.0.1:8100/api",
    fallback: null
  }),
  REALTIME_API_KEY: secret({ about: "equal to the relay's REALTIME_API_KEY", fallback: null })
}

/** Throws `SettingsError` with all errors at start, not at the first publication. */
export const publisherFromEnv = (environment: Environment, log: PublisherLog): Publisher => {
  const errors: string[] = []
  const { REALTIME_PUBLISH_URL: url, REALTIME_API_KEY: apiKey } = readSettings(publisherSettings, environment, errors)
  if (url === null && errors.length === 0) errors.push('REALTIME_PUBLISH_URL is required')
  if (apiKey === null && !errors.some((error) => error.startsWith('REALTIME_API_KEY')))
    errors.push('REALTIME_API_KEY is required')
  if (url === null || apiKey === null || errors.length > 0) throw new SettingsError(errors)
  return createPublisher({ url, apiKey, log })
}

const NO_LOG: PublisherLog = { warn: () => undefined }
const TIMEOUT_MS = 3_000
const DEADLINE_MS = 10_000
/** The relay remembers idempotency keys for five minutes. A later retry could publish twice. */
const MAX_DEADLINE_MS = 4 * 60 * 1000
const MAX_IN_FLIGHT = 256
const CONNECTIONS = 8
const MAX_RESPONSE_BYTES = 1024 * 1024
const FIRST_RETRY_MS = 100
const MAX_RETRY_MS = 2_000

/** Throws a `TypeError` without address or key, and a `RangeError` for a deadline after which idempotency keys are forgotten. */
export const createPublisher = (options: PublisherOptions): Publisher => new HttpPublisher(options)

interface Publication {
  readonly path: string
  readonly channels: readonly string[]
  readonly body: string
  readonly isRetried: boolean
  /** On the clock of `performance.now`. */
  readonly deadline: number
}

class HttpPublisher implements Publisher {
  readonly #pool: Pool
  readonly #path: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #timeoutMs: number
  readonly #deadlineMs: number
  readonly #maxInFlight: number
  readonly #failures: FailureLog
  /** Aborted when `close` stops waiting. */
  readonly #cutOff = new AbortController()
  /** The last pending publication of each channel. */
  readonly #lastByChannel = new Map<string, Promise<unknown>>()
  readonly #inFlight = new Set<Promise<unknown>>()
  #closed = false
  #published = 0
  #failed = 0
  #dropped = 0
  #retried = 0

  constructor(options: PublisherOptions) {
    const { url, apiKey, log = NO_LOG, timeoutMs = TIMEOUT_MS, maxInFlight = MAX_IN_FLIGHT } = options
    const { deadlineMs = Math.max(DEADLINE_MS, timeoutMs) } = options
    if (!(deadlineMs >= timeoutMs && deadlineMs <= MAX_DEADLINE_MS))
      throw new RangeError(`deadlineMs must be at least timeoutMs and at most ${MAX_DEADLINE_MS}`)
    if (!URL.canParse(url))
      throw new TypeError('url must be the address of the API of the relay, such as http://127.0.0.1:8100/api')
    if (!apiKey) throw new TypeError('apiKey must not be empty')
    const { origin, pathname } = new URL(url)
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS,
      connect: { timeout: timeoutMs },
      maxResponseSize: MAX_RESPONSE_BYTES
    })
    this.#path = apiPath(pathname)
    this.#headers = {
      'content-type': 'application/json',
      'x-api-key': apiKey,
      'x-centrifugo-error-mode': 'transport'
    }
    this.#timeoutMs = timeoutMs
    this.#deadlineMs = deadlineMs
    this.#maxInFlight = maxInFlight
    this.#failures = new FailureLog(log)
  }

  publish(channel: string, data: unknown, options: PublishOptions = {}): Promise<PublishOutcome> {
    return this.#send('publish', [channel], { channel, data }, options)
  }

  async broadcast(channels: readonly string[], data: unknown, options: PublishOptions = {}): Promise<PublishOutcome> {
    return channels.length === 0 ? PUBLISHED : this.#send('broadcast', channels, { channels, data }, options)
  }

  counts(): PublisherCounts {
    return { published: this.#published, failed: this.#failed, dropped: this.#dropped, retried: this.#retried }
  }

  async close(): Promise<void> {
    this.#closed = true
    const timer = setTimeout(() => {
      this.#cutOff.abort()
      void this.#pool.destroy()
    }, this.#timeoutMs)
    await Promise.all(this.#inFlight)
    clearTimeout(timer)
    await this.#pool.destroy()
  }

  async #send(
    method: string,
    channels: readonly string[],
    request: object,
    { idempotencyKey, retry = true }: PublishOptions
  ): Promise<PublishOutcome> {
    if (this.#closed || this.#inFlight.size >= this.#maxInFlight) {
      this.#dropped += 1
      return this.#report(this.#closed ? 'closed' : 'too much in flight', channels)
    }
    const key = idempotencyKey ?? (retry ? randomUUID() : undefined)
    let body: string
    try {
      // At once: the caller may change the object later.
      body = JSON.stringify({ ...request, idempotency_key: key })
    } catch {
      return this.#fail('not JSON', channels)
    }
    const path = `${this.#path}/${method}`
    const deadline = performance.now() + this.#deadlineMs
    const sent = this.#inOrder(channels, () => this.#post({ path, channels, body, isRetried: retry, deadline }))
    this.#inFlight.add(sent)
    void sent.then(() => this.#inFlight.delete(sent))
    return sent
  }

  /** Starts the task when all earlier publications of these channels are complete. The task must not reject. */
  #inOrder<Result>(channels: readonly string[], task: () => Promise<Result>): Promise<Result> {
    const earlier = channels.map((channel) => this.#lastByChannel.get(channel)).filter((each) => each !== undefined)
    const done = earlier.length === 0 ? task() : Promise.all(earlier).then(task)
    for (const channel of channels) this.#lastByChannel.set(channel, done)
    void done.then(() => {
      for (const channel of channels) {
        if (this.#lastByChannel.get(channel) === done) this.#lastByChannel.delete(channel)
      }
    })
    return done
  }

  /** Never rejects. */
  async #post(publication: Publication): Promise<PublishOutcome> {
    const { path, channels, body, isRetried, deadline } = publication
    let failure: PublishFailure = { reason: 'timeout', isTemporary: true, rejected: null }
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(2 * retryMs, MAX_RETRY_MS)) {
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) break
      failure = await sendRequest(this.#pool, { path, headers: this.#headers, body }, Math.min(leftMs, this.#timeoutMs))
      if (failure === null) {
        this.#published += 1
        return PUBLISHED
      }
      if (!(isRetried && failure.isTemporary && (await this.#pause(retryMs, deadline)))) break
      this.#retried += 1
    }
    return this.#fail(failure.reason, failure.rejected?.map((index) => channels[index] ?? '') ?? channels)
  }

  /** Waits before a retry, with jitter. False if there is no time left, or the publisher was closed. */
  async #pause(retryMs: number, deadline: number): Promise<boolean> {
    const ms = retryMs * (0.5 + Math.random() / 2)
    if (performance.now() + ms >= deadline) return false
    return delay(ms, true, { signal: this.#cutOff.signal }).catch(() => false)
  }

  #fail(reason: string, channels: readonly string[]): PublishOutcome {
    this.#failed += 1
    return this.#report(reason, channels)
  }

  #report(reason: string, channels: readonly string[]): PublishOutcome {
    this.#failures.note(reason)
    return { isPublished: false, reason, channels }
  }
}

const PUBLISHED: PublishOutcome = Object.freeze({ isPublished: true })

/** `/api` if the URL has no path. A trailing `/publish` is removed. */
const apiPath = (pathname: string): string => pathname.replace(/\/+$/, '').replace(/\/publish$/, '') || '/api'

const LOG_EVERY_MS = 10_000

/** Limits the log during an outage: the first failure is logged at once, later ones are summed up. */
class FailureLog {
  readonly #log: PublisherLog
  #unlogged = 0
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor(log: PublisherLog) {
    this.#log = log
  }

  note(reason: string): void {
    this.#unlogged += 1
    const now = performance.now()
    if (now - this.#loggedAt < LOG_EVERY_MS) return
    this.#log.warn({ reason, failures: this.#unlogged }, 'publishing to the relay failed')
    this.#loggedAt = now
    this.#unlogged = 0
  }
}
