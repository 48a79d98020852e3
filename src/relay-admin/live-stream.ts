import type { LiveEvents } from '../relay/admin/contract.js'

export type StreamState = 'connecting' | 'live' | 'lost'

export interface LiveStreamOptions {
  /** The address of the stream, with or without a channel's publications. */
  readonly addressOf: (channel: string) => string
  readonly on: { readonly [Name in keyof LiveEvents]: (data: LiveEvents[Name]) => void }
  readonly onState: (state: StreamState) => void
  /** A stream that was refused says nothing of why: somebody has to ask whether the session still is. */
  readonly onRefused: () => void
}

const SILENT_MS = 5000
const DEAD_MS = 12_000
const AGAIN_AFTER_MS = 3000
const LOOK_EVERY_MS = 1000

/** The one stream that everything on the page lives on. It comes back by itself, until it is closed. */
export class LiveStream {
  readonly #options: LiveStreamOptions
  #source: EventSource | null = null
  #channel = ''
  #heardAtMs = 0
  #openAgainAtMs = Number.POSITIVE_INFINITY
  #looking: ReturnType<typeof setInterval> | undefined

  constructor(options: LiveStreamOptions) {
    this.#options = options
  }

  /** Brings the channel's publications too, '' for none; a stream that is closed stays so. */
  listenTo(channel: string): void {
    this.#channel = channel
    if (this.#source !== null) this.open()
  }

  open(): void {
    this.#source?.close()
    this.#openAgainAtMs = Number.POSITIVE_INFINITY
    this.#heardAtMs = Date.now()
    this.#looking ??= setInterval(() => this.#look(), LOOK_EVERY_MS)
    const source = new EventSource(this.#options.addressOf(this.#channel))
    this.#source = source
    for (const name of Object.keys(this.#options.on) as (keyof LiveEvents)[]) {
      source.addEventListener(name, ({ data }: MessageEvent<string>) => this.#hear(name, data))
    }
    source.addEventListener('error', () => {
      this.#options.onState('lost')
      if (source.readyState !== EventSource.CLOSED) return
      this.#options.onRefused()
      this.#openAgainAtMs = Date.now() + AGAIN_AFTER_MS
    })
  }

  close(): void {
    clearInterval(this.#looking)
    this.#looking = undefined
    this.#source?.close()
    this.#source = null
  }

  #hear<Name extends keyof LiveEvents>(name: Name, data: string): void {
    this.#heardAtMs = Date.now()
    this.#options.onState('live')
    this.#options.on[name](JSON.parse(data) as LiveEvents[Name])
  }

  /** A connection that breaks without a word (a laptop that slept, a proxy) is noticed by its silence. */
  #look(): void {
    const silentMs = Date.now() - this.#heardAtMs
    if (silentMs > SILENT_MS) this.#options.onState('lost')
    if (silentMs > DEAD_MS || Date.now() >= this.#openAgainAtMs) this.open()
  }
}
