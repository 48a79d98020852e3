import type { Log } from '../../shared/log.js'
import { type ChannelStateEvent, type ChannelStates, EngineError } from '../core/engine.js'

/** The first wait after a failed request. It doubles with each further one. */
const FIRST_RETRY_MS = 100
const MAX_RETRY_MS = 20_000
/** How often to look for events. This process is not notified about all of them. */
const POLL_MS = 1_000
/** How much longer than a request an event is leased, for its confirmation. */
const CONFIRM_MS = 5_000

/** The events of one proxy. */
export interface WebhookOptions {
  readonly timeoutMs: number
  /** Maximum number of events in one request. */
  readonly batchSize: number
  /** Events of types that a namespace does not select are not sent. */
  isSelected(event: ChannelStateEvent): boolean
}

export interface WebhookSenderDependencies {
  readonly states: ChannelStates
  /** Sends a request. Resolves with whether the backend has accepted the events, and never rejects. */
  readonly send: (proxy: string, body: string) => Promise<boolean>
  /** Runs a task after a time, and returns a function that cancels it. */
  readonly setTimer: (task: () => void, ms: number) => () => void
  readonly log: Log
}

/**
 * Sends the channel state events of one proxy to its backend, one request at a time, until each has been accepted. While the
 * backend fails, the wait between requests grows. All processes do this; the leases of the events keep them apart. There is no
 * queue here: the engine stores the event of each channel, so that with Redis another process sends those of a killed one.
 */
export class WebhookSender {
  options: WebhookOptions
  readonly #proxy: string
  readonly #dependencies: WebhookSenderDependencies
  /** Failed requests since the last successful one. */
  #failures = 0
  #isClosed = false
  /** An event became due after the last `take` began. */
  #isDue = false
  #endWait = (): void => undefined
  readonly #ended: Promise<void>

  constructor(proxy: string, options: WebhookOptions, dependencies: WebhookSenderDependencies) {
    this.#proxy = proxy
    this.options = options
    this.#dependencies = dependencies
    this.#ended = this.#run()
  }

  /** Events may be due. */
  wake(): void {
    this.#isDue = true
    // After a failure, new events wait too.
    if (this.#failures === 0) this.#endWait()
  }

  /** Resolves when the request that is under way has ended. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#endWait()
    return this.#ended
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      this.#isDue = false
      const waitMs = await this.#sendBatch().catch((error: unknown) => {
        // The engine has logged its own failures.
        if (!(error instanceof EngineError))
          this.#dependencies.log.error({ err: error }, 'webhook events not processed')
        return POLL_MS
      })
      if (waitMs > 0) await this.#wait(waitMs)
    }
  }

  /** Returns the time to wait before the next batch. */
  async #sendBatch(): Promise<number> {
    const { states, send } = this.#dependencies
    const { timeoutMs, batchSize } = this.options
    const { events, nextMs } = await states.take(this.#proxy, batchSize, timeoutMs + CONFIRM_MS)
    const selected = events.filter((event) => this.options.isSelected(event))
    const others = events.filter((event) => !selected.includes(event))
    if (others.length > 0) await states.confirm(this.#proxy, others)
    if (selected.length === 0) return events.length > 0 ? 0 : Math.min(nextMs, POLL_MS)
    if (await send(this.#proxy, webhookBody(selected))) {
      this.#failures = 0
      await states.confirm(this.#proxy, selected)
      return 0
    }
    this.#failures += 1
    await states.release(this.#proxy, selected)
    return Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), MAX_RETRY_MS)
  }

  #wait(ms: number): Promise<void> {
    if (this.#isClosed || (this.#isDue && this.#failures === 0)) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.#dependencies.setTimer(resolve, ms)
      this.#endWait = () => {
        cancel()
        resolve()
      }
    })
  }
}

/** `{"events": […]}`, with the names of Centrifugo PRO. */
const webhookBody = (events: readonly ChannelStateEvent[]): string =>
  JSON.stringify({
    events: events.map(({ channel, type, timeMs, id }) => ({ channel, type, time_ms: timeMs, id }))
  })
