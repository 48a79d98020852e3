import { Pool } from 'undici'
import { type Environment, readSettings, SettingsError } from './env.js'
import { errorCode } from './error-code.js'
import { secret, text } from './setting-kinds.js'

/**
 * Publishes to the relay without blocking the caller. Methods never throw; failures are counted and logged. Publications
 * of one channel are sent one after the other, in the order of the calls.
 */
export interface Publisher {
  publish(channel: string, data: unknown): void
  /** The same data to many channels, in one request. */
  broadcast(channels: readonly string[], data: unknown): void
  counts(): PublisherCounts
  /** Rejects new publications and waits for pending ones, at most for the timeout of one request. */
  close(): Promise<void>
}

export interface PublisherCounts {
  readonly published: number
  /** Rejected by the relay, or without a response in time. */
  readonly failed: number
  /** Not sent, because too many were in flight. */
  readonly dropped: number
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
  readonly timeoutMs?: number
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
const MAX_IN_FLIGHT = 256
const CONNECTIONS = 8
const MAX_RESPONSE_BYTES = 1024 * 1024

export const createPublisher = (options: PublisherOptions): Publisher => new HttpPublisher(options)

class HttpPublisher implements Publisher {
  readonly #pool: Pool
  readonly #path: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #timeoutMs: number
  readonly #maxInFlight: number
  readonly #failures: FailureLog
  /** The last pending request of each channel. */
  readonly #lastByChannel = new Map<string, Promise<void>>()
  readonly #inFlight = new Set<Promise<void>>()
  #closed = false
  #published = 0
  #failed = 0
  #dropped = 0

  constructor({ url, apiKey, log = NO_LOG, timeoutMs = TIMEOUT_MS, maxInFlight = MAX_IN_FLIGHT }: PublisherOptions) {
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
    this.#maxInFlight = maxInFlight
    this.#failures = new FailureLog(log)
  }

  publish(channel: string, data: unknown): void {
    this.#send('publish', [channel], { channel, data })
  }

  broadcast(channels: readonly string[], data: unknown): void {
    if (channels.length > 0) this.#send('broadcast', channels, { channels, data })
  }

  counts(): PublisherCounts {
    return { published: this.#published, failed: this.#failed, dropped: this.#dropped }
  }

  async close(): Promise<void> {
    this.#closed = true
    const cutOff = setTimeout(() => void this.#pool.destroy(), this.#timeoutMs)
    await Promise.all(this.#inFlight)
    clearTimeout(cutOff)
    await this.#pool.destroy()
  }

  #send(method: string, channels: readonly string[], request: object): void {
    if (this.#closed || this.#inFlight.size >= this.#maxInFlight) {
      this.#dropped += 1
      this.#failures.note(this.#closed ? 'closed' : 'too much in flight')
      return
    }
    let body: string
    try {
      // At once: the caller may change the object later.
      body = JSON.stringify(request)
    } catch {
      this.#fail('not JSON')
      return
    }
    const sent = this.#inOrder(channels, () => this.#post(method, body))
    this.#inFlight.add(sent)
    void sent.then(() => this.#inFlight.delete(sent))
  }

  /** Starts the task when all earlier requests of these channels are complete. The task must not reject. */
  #inOrder(channels: readonly string[], task: () => Promise<void>): Promise<void> {
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
  async #post(method: string, body: string): Promise<void> {
    try {
      const { statusCode, body: response } = await this.#pool.request({
        method: 'POST',
        path: `${this.#path}/${method}`,
        headers: this.#headers,
        body,
        signal: AbortSignal.timeout(this.#timeoutMs)
      })
      const text = await response.text()
      const reason = statusCode === 200 ? rejectionIn(text) : errorIn(text, statusCode)
      if (reason !== null) return this.#fail(reason)
      this.#published += 1
    } catch (error) {
      this.#fail(reasonOf(error))
    }
  }

  #fail(reason: string): void {
    this.#failed += 1
    this.#failures.note(reason)
  }
}

/** `/api` if the URL has no path. A trailing `/publish` is removed. */
const apiPath = (pathname: string): string => pathname.replace(/\/+$/, '').replace(/\/publish$/, '') || '/api'

/** A rejected publication has an error status, and the code in its body. */
const errorIn = (text: string, statusCode: number): string => {
  try {
    const { code } = JSON.parse(text)
    return typeof code === 'number' ? `relay error ${code}` : `status ${statusCode}`
  } catch {
    return `status ${statusCode}`
  }
}

/** A broadcast has the status 200 also if some channels were rejected. Null if all were accepted. */
const rejectionIn = (text: string): string | null => {
  try {
    const { error, result } = JSON.parse(text)
    const rejection = error ?? result?.responses?.find((response: { error?: unknown }) => response.error)?.error
    if (rejection) return `relay error ${Number(rejection.code)}`
    return result === undefined ? 'not a response of the relay' : null
  } catch {
    return 'not a response of the relay'
  }
}

const reasonOf = (error: unknown): string => {
  if (error instanceof Error && error.name === 'TimeoutError') return 'timeout'
  return errorCode(error) || 'unknown'
}

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
