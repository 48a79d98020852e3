import type { LiveEvents } from '../relay/admin/contract.js'

export type StreamState = 'connecting' | 'live' | 'lost'

/** An event with the data of its name. */
export type LiveEvent = {
  [Name in keyof LiveEvents]: { readonly name: Name; readonly data: LiveEvents[Name] }
}[keyof LiveEvents]

export interface LiveListener {
  onEvent(event: LiveEvent): void
  onState(state: StreamState): void
  /** The stream was rejected. An EventSource gives no reason, so the session must be checked. */
  onRejected(): void
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

/** The stream of server-sent events. It reconnects until it is closed. */
export class LiveStream {
  readonly #addressOf: (channels: readonly string[]) => string
  readonly #listener: LiveListener
  #source: EventSource | null = null
  /** Replaces `#source` with its first event, so that events continue while the channels change. */
  #replacement: EventSource | null = null
  #channels: readonly string[] = []
  #lastEventAtMs = 0
  #reopenAtMs = Number.POSITIVE_INFINITY
  #checkTimer: ReturnType<typeof setInterval> | undefined

  constructor(addressOf: (channels: readonly string[]) => string, listener: LiveListener) {
    this.#addressOf = addressOf
    this.#listener = listener
  }

  get isOpen(): boolean {
    return this.#checkTimer !== undefined
  }

  /** Sets the channels whose publications are received. Does not open a closed stream. */
  selectChannels(channels: readonly string[]): void {
    if (channels.join('\n') === this.#channels.join('\n')) return
    this.#channels = channels
    if (this.isOpen) this.#connect()
  }

  open(): void {
    this.#source?.close()
    this.#source = null
    this.#checkTimer ??= setInterval(() => this.#check(), CHECK_INTERVAL_MS)
    this.#connect()
  }

  close(): void {
    clearInterval(this.#checkTimer)
    this.#checkTimer = undefined
    this.#source?.close()
    this.#replacement?.close()
    this.#source = null
    this.#replacement = null
  }

  #connect(): void {
    this.#replacement?.close()
    this.#reopenAtMs = Number.POSITIVE_INFINITY
    this.#lastEventAtMs = Date.now()
    const source = new EventSource(this.#addressOf(this.#channels))
    this.#replacement = source
    // The first event of a stream.
    source.addEventListener('history', () => this.#replaceWith(source))
    for (const name of EVENT_NAMES) {
      source.addEventListener(name, ({ data }: MessageEvent<string>) => {
        if (source === this.#source) this.#receive(name, data)
      })
    }
    source.addEventListener('error', () => this.#failed(source))
  }

  #replaceWith(source: EventSource): void {
    if (source !== this.#replacement) return
    this.#source?.close()
    this.#source = source
    this.#replacement = null
  }

  #failed(source: EventSource): void {
    if (source !== this.#source && source !== this.#replacement) return
    // An earlier stream may still deliver.
    if (source === this.#source || this.#source === null) this.#listener.onState('lost')
    if (source.readyState !== EventSource.CLOSED) return
    this.#listener.onRejected()
    this.#reopenAtMs = Date.now() + RETRY_AFTER_MS
  }

  #receive(name: keyof LiveEvents, data: string): void {
    this.#lastEventAtMs = Date.now()
    this.#listener.onState('live')
    // The relay is the only sender, and its events have these types.
    this.#listener.onEvent({ name, data: JSON.parse(data) } as LiveEvent)
  }

  /** Detects connections that broke without an error, such as after standby. */
  #check(): void {
    const silentMs = Date.now() - this.#lastEventAtMs
    if (silentMs > LOST_AFTER_MS) this.#listener.onState('lost')
    if (silentMs > REOPEN_AFTER_SILENCE_MS || Date.now() >= this.#reopenAtMs) this.open()
  }
}
