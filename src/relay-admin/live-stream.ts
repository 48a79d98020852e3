import type { LiveEvents } from '../relay/admin/contract.js'

export type StreamState = 'connecting' | 'live' | 'lost'

export interface LiveStreamOptions {
  /** The URL of the stream; '' for no channel. */
  readonly addressOf: (channel: string) => string
  readonly on: { readonly [Name in keyof LiveEvents]: (data: LiveEvents[Name]) => void }
  readonly onState: (state: StreamState) => void
  /** The stream was rejected. An EventSource gives no reason, so the session must be checked. */
  readonly onRejected: () => void
}

const EVENT_NAMES = [
  'history',
  'sample',
  'checks',
  'publication',
  'end'
] as const satisfies readonly (keyof LiveEvents)[]

const LOST_AFTER_MS = 5000
const REOPEN_AFTER_SILENCE_MS = 12_000
const RETRY_AFTER_MS = 3000
const CHECK_INTERVAL_MS = 1000

/** The stream of server-sent events behind the whole page. It reconnects until it is closed. */
export class LiveStream {
  readonly #options: LiveStreamOptions
  #source: EventSource | null = null
  #channel = ''
  #lastEventAtMs = 0
  #reopenAtMs = Number.POSITIVE_INFINITY
  #checkTimer: ReturnType<typeof setInterval> | undefined

  constructor(options: LiveStreamOptions) {
    this.#options = options
  }

  /** Adds the publications of a channel, or '' for none. Does not open a closed stream. */
  selectChannel(channel: string): void {
    this.#channel = channel
    if (this.#source !== null) this.open()
  }

  open(): void {
    this.#source?.close()
    this.#reopenAtMs = Number.POSITIVE_INFINITY
    this.#lastEventAtMs = Date.now()
    this.#checkTimer ??= setInterval(() => this.#check(), CHECK_INTERVAL_MS)
    const source = new EventSource(this.#options.addressOf(this.#channel))
    this.#source = source
    for (const name of EVENT_NAMES) {
      source.addEventListener(name, ({ data }: MessageEvent<string>) => this.#receive(name, data))
    }
    source.addEventListener('error', () => {
      this.#options.onState('lost')
      if (source.readyState !== EventSource.CLOSED) return
      this.#options.onRejected()
      this.#reopenAtMs = Date.now() + RETRY_AFTER_MS
    })
  }

  close(): void {
    clearInterval(this.#checkTimer)
    this.#checkTimer = undefined
    this.#source?.close()
    this.#source = null
  }

  #receive<Name extends keyof LiveEvents>(name: Name, data: string): void {
    this.#lastEventAtMs = Date.now()
    this.#options.onState('live')
    // The relay is the only sender, and its events have these types.
    this.#options.on[name](JSON.parse(data) as LiveEvents[Name])
  }

  /** Detects connections that broke without an error, such as after standby. */
  #check(): void {
    const silentMs = Date.now() - this.#lastEventAtMs
    if (silentMs > LOST_AFTER_MS) this.#options.onState('lost')
    if (silentMs > REOPEN_AFTER_SILENCE_MS || Date.now() >= this.#reopenAtMs) this.open()
  }
}
