import { setTimeout } from 'node:timers/promises'
import { API_KEY } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'
import { FIRST_BURST_NUMBER, payloadOf, type SoakChannel } from './channels.js'
import type { Random } from './random.js'
import type { Acknowledged } from './verifier.js'

/** After this time without a response the next node is tried. */
const ATTEMPT_MS = 3_000
const RETRY_MS = 50
/** Far longer than any fault lasts: no node confirms any more. */
const GIVE_UP_MS = 180_000
/** Error 100 is temporary: Redis is away, or a node did not confirm. */
const INTERNAL = 100

export interface ApiError {
  readonly code: number
  readonly message: string
}

/** The fields of results that the run uses. */
export interface ApiResult {
  readonly epoch?: string
  readonly offset?: number
  readonly [field: string]: unknown
}

/** A call that the relay rejected for good, or that no node confirmed. */
export class CallFailed extends Error {}

/** The run has ended, so the call is not retried any more. */
export class RunEnded extends Error {}

/** Calls the HTTP API as a careful backend does: on any node, again and again until one confirms. */
export class Api {
  readonly #urls: readonly string[]
  readonly #random: Random
  #hasEnded = false

  constructor(urls: readonly string[], random: Random) {
    this.#urls = urls
    this.#random = random
  }

  /** Calls that are still being retried fail. */
  end(): void {
    this.#hasEnded = true
  }

  /** The result of the method; retries what is temporary. Calls may be made twice, so they are idempotent or have a key. */
  async call(method: string, request: Readonly<Record<string, unknown>>): Promise<ApiResult> {
    const first = this.#random.whole(0, this.#urls.length - 1)
    const deadline = performance.now() + GIVE_UP_MS
    for (let attempt = 0; ; attempt++) {
      const url = required(this.#urls[(first + attempt) % this.#urls.length])
      const response = await this.#attempt(url, method, request)
      if (response?.error !== undefined && response.error.code !== INTERNAL)
        throw new CallFailed(`${method} was rejected: ${response.error.code} ${response.error.message}`)
      if (response?.result !== undefined) return response.result
      if (this.#hasEnded) throw new RunEnded(`the run ended before a node confirmed ${method}`)
      if (performance.now() > deadline) throw new CallFailed(`no node confirmed ${method} for ${GIVE_UP_MS / 1000} s`)
      await setTimeout(RETRY_MS)
    }
  }

  /** Null if the node did not respond or reported a temporary error. */
  async #attempt(
    url: string,
    method: string,
    request: Readonly<Record<string, unknown>>
  ): Promise<{ readonly result?: ApiResult; readonly error?: ApiError } | null> {
    const [path, body] = this.#form(method, request)
    try {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'x-api-key': API_KEY },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ATTEMPT_MS)
      })
      const text = await response.text()
      if (response.status !== 200) return null
      const received = JSON.parse(text)
      if (received.replies === undefined) return received
      const [reply] = received.replies
      return reply.error === undefined ? { result: reply[method] } : reply
    } catch {
      return null
    }
  }

  /** One of the three forms of the API. */
  #form(method: string, request: Readonly<Record<string, unknown>>): readonly [path: string, body: unknown] {
    const form = this.#random.whole(0, 2)
    if (form === 0) return [`/api/${method}`, request]
    if (form === 1) return ['/api', { method, params: request }]
    return ['/api/batch', { commands: [{ [method]: request }] }]
  }
}

/** Publishes on every channel, one publication after the other, and records what the API confirms. */
export class Publisher {
  readonly acknowledged: Acknowledged[] = []
  readonly #api: Api
  readonly #reject: (channel: string, error: Error) => void
  readonly #work: Promise<void>[] = []
  readonly #numbers = new Map<string, number>()
  #burstNumber = FIRST_BURST_NUMBER
  #isStopping = false

  /** `reject` receives the reason for which a publication was given up. */
  constructor(api: Api, reject: (channel: string, error: Error) => void) {
    this.#api = api
    this.#reject = reject
  }

  start(channels: readonly SoakChannel[]): void {
    for (const channel of channels) this.#work.push(this.#loop(channel))
  }

  /** Resolves when everything that was begun is confirmed. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#work)
  }

  /** Publishes `count` publications, several at a time. */
  burst(channel: SoakChannel, count: number, concurrency: number): Promise<void> {
    let left = count
    const work = async (): Promise<void> => {
      while (left-- > 0) await this.#publish(channel, this.#burstNumber++)
    }
    const burst = Promise.all(Array.from({ length: concurrency }, work)).then(() => undefined)
    this.#work.push(burst)
    return burst
  }

  /** One more, after all others; its number. */
  async next(channel: SoakChannel): Promise<number> {
    const n = (this.#numbers.get(channel.name) ?? 0) + 1
    this.#numbers.set(channel.name, n)
    await this.#publish(channel, n)
    return n
  }

  async #loop(channel: SoakChannel): Promise<void> {
    while (!this.#isStopping) {
      await this.next(channel)
      await setTimeout(channel.intervalMs)
    }
  }

  async #publish(channel: SoakChannel, n: number): Promise<void> {
    const request = { channel: channel.name, data: payloadOf(channel, n), idempotency_key: `${channel.name} ${n}` }
    try {
      const { epoch = '', offset = 0 } = await this.#api.call('publish', request)
      this.acknowledged.push({ channel: channel.name, n, epoch, offset })
    } catch (error) {
      this.#isStopping = true
      if (error instanceof CallFailed) this.#reject(channel.name, error)
      else if (!(error instanceof RunEnded)) throw error
    }
  }
}
