import { addressOf } from './api.js'
import { type LiveListener, LiveStream } from './live-stream.js'
import type { TabMessage, WorkerMessage } from './stream-worker.js'

/** The live events of this tab. */
export interface LiveSource {
  open(): void
  close(): void
  /** Adds the publications of a channel; '' for none. */
  selectChannel(channel: string): void
}

/** A stream of this tab alone, for browsers without shared workers. */
class OwnStream implements LiveSource {
  readonly #stream: LiveStream

  constructor(listener: LiveListener) {
    this.#stream = new LiveStream((channels) => addressOf('live', { channel: channels }), listener)
  }

  open(): void {
    this.#stream.open()
  }

  close(): void {
    this.#stream.close()
  }

  selectChannel(channel: string): void {
    this.#stream.selectChannels(channel === '' ? [] : [channel])
  }
}

const CHECK_INTERVAL_MS = 5000
/** The worker sends a message every two seconds. Checks are counted instead of time, which jumps after standby. */
const MAX_SILENT_CHECKS = 3

/** The stream that all tabs share, in a worker. If the worker does not run, the tab opens its own stream. */
class SharedStream implements LiveSource {
  readonly #listener: LiveListener
  readonly #port: MessagePort
  #channel = ''
  #isOpen = false
  #silentChecks = 0
  #ownStream: OwnStream | null = null

  constructor(worker: SharedWorker, listener: LiveListener) {
    this.#listener = listener
    this.#port = worker.port
    worker.addEventListener('error', () => this.#useOwnStream())
    this.#port.addEventListener('message', ({ data }: MessageEvent<WorkerMessage>) => this.#receive(data))
    this.#port.start()
    this.#holdLock()
    addEventListener('pagehide', () => this.#post({ kind: 'close' }))
    // The browser shows a page again that it has kept in memory.
    addEventListener('pageshow', ({ persisted }) => {
      if (persisted && this.#isOpen) this.#post({ kind: 'open', channel: this.#channel })
    })
    setInterval(() => this.#check(), CHECK_INTERVAL_MS)
  }

  open(): void {
    this.#isOpen = true
    this.#silentChecks = 0
    if (this.#ownStream === null) this.#post({ kind: 'open', channel: this.#channel })
    else this.#ownStream.open()
  }

  close(): void {
    this.#isOpen = false
    this.#ownStream?.close()
    this.#post({ kind: 'close' })
  }

  selectChannel(channel: string): void {
    this.#channel = channel
    this.#ownStream?.selectChannel(channel)
    if (this.#isOpen) this.#post({ kind: 'select', channel })
  }

  #post(message: TabMessage): void {
    if (this.#ownStream === null || message.kind === 'close') this.#port.postMessage(message)
  }

  /** Tells the worker when this tab has crashed. Without https or localhost there are no locks. */
  #holdLock(): void {
    if (navigator.locks === undefined) return
    const name = `relay-admin-tab-${crypto.randomUUID()}`
    void navigator.locks.request(name, () => {
      this.#post({ kind: 'lock', name })
      return new Promise(() => undefined)
    })
  }

  #receive(message: WorkerMessage): void {
    this.#silentChecks = 0
    if (!this.#isOpen || this.#ownStream !== null) return
    if (message.kind === 'event') this.#listener.onEvent(message.event)
    else if (message.kind === 'state') this.#listener.onState(message.state)
    else this.#listener.onRejected()
  }

  #check(): void {
    if (!this.#isOpen || this.#ownStream !== null) return
    this.#silentChecks++
    if (this.#silentChecks > MAX_SILENT_CHECKS) this.#useOwnStream()
  }

  #useOwnStream(): void {
    if (this.#ownStream !== null) return
    this.#post({ kind: 'close' })
    this.#ownStream = new OwnStream(this.#listener)
    this.#ownStream.selectChannel(this.#channel)
    if (this.#isOpen) this.#ownStream.open()
  }
}

export const liveSource = (listener: LiveListener): LiveSource => {
  if (typeof SharedWorker === 'undefined') return new OwnStream(listener)
  try {
    return new SharedStream(
      new SharedWorker(new URL('./stream-worker.ts', import.meta.url), { type: 'module', name: 'relay-admin' }),
      listener
    )
  } catch {
    // Not permitted, for example because the browser blocks the storage of this site.
    return new OwnStream(listener)
  }
}
