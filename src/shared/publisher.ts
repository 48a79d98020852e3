import type { Logger } from 'pino'
import { Pool } from 'undici'
import { type Environment, readSettings, SettingsFault } from './env.js'
import { LastInLine } from './last-in-line.js'
import { secret, text } from './setting-kinds.js'

/**
 * Publishes to the relay for backends that must not wait for it. Nothing is thrown and nothing is returned: what fails is
 * counted and logged. Publications of one channel leave in the order in which they were given, one after the other.
 */
export interface Publisher {
  publish(channel: string, data: unknown): void
  /** The same data to many channels, in one request. */
  broadcast(channels: readonly string[], data: unknown): void
  counts(): PublisherCounts
  /** Takes nothing more, and waits for what is on its way, but no longer than one request may take. */
  close(): Promise<void>
}

export interface PublisherCounts {
  readonly published: number
  /** Refused by the relay, answered too late, or never answered. */
  readonly failed: number
  /** Not sent, because too much was on its way. */
  readonly dropped: number
}

export interface PublisherOptions {
  /** The relay's `/api`. */
  readonly url: string
  readonly apiKey: string
  readonly log: Logger
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

/** Throws `SettingsFault` with every fault there is: at start, not when something is published. */
export const publisherFromEnv = (environment: Environment, log: Logger): Publisher => {
  const faults: string[] = []
  const { REALTIME_PUBLISH_URL: url, REALTIME_API_KEY: apiKey } = readSettings(publisherSettings, environment, faults)
  if (url === null && faults.length === 0) faults.push('REALTIME_PUBLISH_URL is required')
  if (apiKey === null && !faults.some((fault) => fault.startsWith('REALTIME_API_KEY')))
    faults.push('REALTIME_API_KEY is required')
  if (url === null || apiKey === null) throw new SettingsFault(faults)
  return createPublisher({ url, apiKey, log })
}

const TIMEOUT_MS = 3_000
const MAX_IN_FLIGHT = 256
const CONNECTIONS = 8
const MAX_ANSWER_BYTES = 1024 * 1024

export const createPublisher = (options: PublisherOptions): Publisher => new HttpPublisher(options)

class HttpPublisher implements Publisher {
  readonly #pool: Pool
  readonly #path: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #timeoutMs: number
  readonly #maxInFlight: number
  readonly #failures: FailureLog
  readonly #lines = new LastInLine()
  readonly #inFlight = new Set<Promise<void>>()
  #closed = false
  #published = 0
  #failed = 0
  #dropped = 0

  constructor({ url, apiKey, log, timeoutMs = TIMEOUT_MS, maxInFlight = MAX_IN_FLIGHT }: PublisherOptions) {
    const { origin, pathname } = new URL(url)
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS,
      connect: { timeout: timeoutMs },
      maxResponseSize: MAX_ANSWER_BYTES
    })
    this.#path = apiPath(pathname)
    this.#headers = { 'content-type': 'application/json', 'x-api-key': apiKey }
    this.#timeoutMs = timeoutMs
    this.#maxInFlight = maxInFlight
    this.#failures = new FailureLog(log)
  }

  publish(channel: string, data: unknown): void {
    this.#send('publish', [channel], { channel, data })
  }

  broadcast(channels: readonly string[], data: unknown): void {
    // To nobody is what was asked for, and done.
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
      // Now, because the caller may change its object afterwards.
      body = JSON.stringify(request)
    } catch {
      this.#fail('not JSON')
      return
    }
    const sent = this.#lines.wait(channels, () => this.#post(method, body))
    this.#inFlight.add(sent)
    void sent.then(() => this.#inFlight.delete(sent))
  }

  /** Never rejects. */
  async #post(method: string, body: string): Promise<void> {
    try {
      const { statusCode, body: answer } = await this.#pool.request({
        method: 'POST',
        path: `${this.#path}/${method}`,
        headers: this.#headers,
        body,
        signal: AbortSignal.timeout(this.#timeoutMs)
      })
      const text = await answer.text()
      const reason = statusCode === 200 ? refusalIn(text) : `status ${statusCode}`
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

/** `/api` where only a host was given; a method that was given is not repeated. */
const apiPath = (pathname: string): string => pathname.replace(/\/+$/, '').replace(/\/publish$/, '') || '/api'

/** The relay answers 200 to what it refuses too. Null where it did all that was asked. */
const refusalIn = (text: string): string | null => {
  try {
    const { error, result } = JSON.parse(text)
    const refused = error ?? result?.responses?.find((response: { error?: unknown }) => response.error)?.error
    if (refused) return `relay error ${Number(refused.code)}`
    return result === undefined ? 'not an answer of the relay' : null
  } catch {
    return 'not an answer of the relay'
  }
}

const reasonOf = (error: unknown): string => {
  if (error instanceof Error && error.name === 'TimeoutError') return 'timeout'
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : 'unknown'
}

const LOG_EVERY_MS = 10_000

/** A relay that is down must not fill the log: the first failure is told at once, those after it together. */
class FailureLog {
  readonly #log: Logger
  #untold = 0
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(log: Logger) {
    this.#log = log
  }

  note(reason: string): void {
    this.#untold += 1
    const now = performance.now()
    if (now - this.#toldAt < LOG_EVERY_MS) return
    this.#log.warn({ reason, failures: this.#untold }, 'publishing to the relay failed')
    this.#toldAt = now
    this.#untold = 0
  }
}
