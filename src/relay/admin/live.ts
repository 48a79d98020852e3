import type { ServerResponse } from 'node:http'
import type { Publication } from '../core/publication.js'
import type { Relay } from '../core/relay.js'
import { type Headers, STREAM_HEADERS } from '../transport/respond.js'
import { type LiveEvents, type LivePublication, MAX_PUBLICATIONS_PER_SECOND } from './contract.js'
import { type AdminCall, adminSessionCookie, SECURITY_HEADERS } from './guard.js'
import type { Sessions } from './sessions.js'

/** Events are dropped while more than this is queued for a page. */
const MAX_UNSENT_BYTES = 256 * 1024
const MAX_BLOCKED_MS = 30_000
/** Time to read the last event. */
const CLOSE_TIMEOUT_MS = 5000

/** The text of a server-sent event, shared by all streams. */
export const eventText = <Name extends keyof LiveEvents>(name: Name, data: LiveEvents[Name]): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** The stream of server-sent events to one page. */
export class EventStream {
  readonly #response: ServerResponse
  readonly #monotonicMs: () => number
  #blockedSince: number | null = null
  #isEnded = false

  constructor(response: ServerResponse, headers: Headers, monotonicMs: () => number) {
    this.#response = response
    this.#monotonicMs = monotonicMs
    response.on('error', () => undefined)
    response.writeHead(200, ['Content-Type', 'text/event-stream; charset=utf-8', ...STREAM_HEADERS, ...headers])
    response.socket?.setNoDelay(true)
    response.socket?.setTimeout(0)
    response.write('retry: 2000\n\n')
  }

  /** Drops the event and returns false if the page does not read. */
  send(event: string): boolean {
    const response = this.#response
    if (this.#isEnded) return false
    if (response.writableLength <= MAX_UNSENT_BYTES) {
      this.#blockedSince = null
      response.write(event)
      return true
    }
    const nowMs = this.#monotonicMs()
    this.#blockedSince ??= nowMs
    if (nowMs - this.#blockedSince >= MAX_BLOCKED_MS) response.destroy()
    return false
  }

  /** Closes the connection also if the page does not read. */
  end(lastEvent = ''): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const response = this.#response
    response.end(lastEvent)
    const closing = setTimeout(() => response.destroy(), CLOSE_TIMEOUT_MS).unref()
    response.once('close', () => clearTimeout(closing))
  }
}

const PREVIEW_LENGTH = 4096

/** A publication for the page. Data that is longer than `maxLength` is truncated. */
export const livePublication = (
  channel: string,
  { time, offset, data }: Publication,
  maxLength = PREVIEW_LENGTH
): LivePublication => {
  const isBinary = typeof data !== 'string'
  const isTruncated = data.length > maxLength
  const shown = isTruncated ? data.slice(0, maxLength) : data
  return {
    channel,
    time,
    offset,
    data: typeof shown === 'string' ? shown : shown.toString('base64'),
    isBinary,
    isTruncated,
    size: Buffer.byteLength(data)
  }
}

const MAX_STREAMS = 100
const CHECK_INTERVAL_MS = 1000
/** After this many bytes in one second, further publications are truncated. */
const DATA_BYTES_PER_SECOND = 1024 * 1024

interface LiveStream {
  /** Checked every second: the session may have ended or the password may have changed. */
  readonly cookie: string
  readonly stream: EventStream
  /** Number of publications that may still be sent in this second. */
  publicationsLeft: number
  /** Bytes of data that may still be sent in this second. */
  bytesLeft: number
  /** Number of publications in this second that were not sent. */
  skipped: number
}

/** Sends figures to each added stream until the returned function is called. */
interface FigureSource {
  add(stream: EventStream): () => void
}

/** The streams of all open pages of this node. */
export class LiveStreams {
  readonly #relay: Relay
  readonly #sessions: Sessions
  readonly #collector: FigureSource
  readonly #streams = new Set<LiveStream>()
  #checkTimer: NodeJS.Timeout | null = null

  constructor(relay: Relay, sessions: Sessions, collector: FigureSource) {
    this.#relay = relay
    this.#sessions = sessions
    this.#collector = collector
  }

  open(call: AdminCall): void {
    if (this.#streams.size >= MAX_STREAMS) {
      call.reject(503, 'TOO_MANY_STREAMS', 'Too many open pages.')
      return
    }
    const { response } = call
    const channel = call.query.get('channel') ?? ''
    const live: LiveStream = {
      cookie: adminSessionCookie(call.request) ?? '',
      stream: new EventStream(response, [...SECURITY_HEADERS, ...call.cookie], this.#relay.clocks.monotonicMs),
      publicationsLeft: MAX_PUBLICATIONS_PER_SECOND,
      bytesLeft: DATA_BYTES_PER_SECOND,
      skipped: 0
    }
    const removeObserver = this.#collector.add(live.stream)
    const stopObserving = channel === '' ? null : this.#observe(channel, live)
    this.#streams.add(live)
    this.#checkTimer ??= setInterval(() => this.#tick(), CHECK_INTERVAL_MS)
    response.once('close', () => {
      removeObserver()
      stopObserving?.()
      this.#streams.delete(live)
      if (this.#streams.size === 0) this.#stopChecking()
    })
  }

  close(): void {
    for (const { stream } of this.#streams) stream.end()
    this.#stopChecking()
  }

  /** Begins a new second for all streams, and ends those of sessions that have ended. */
  #tick(): void {
    for (const live of this.#streams) {
      live.publicationsLeft = MAX_PUBLICATIONS_PER_SECOND
      live.bytesLeft = DATA_BYTES_PER_SECOND
      if (live.skipped > 0 && live.stream.send(eventText('skipped', live.skipped))) live.skipped = 0
      if (this.#sessions.read(live.cookie) === null) live.stream.end(eventText('end', null))
    }
  }

  #stopChecking(): void {
    if (this.#checkTimer !== null) clearInterval(this.#checkTimer)
    this.#checkTimer = null
  }

  #observe(channel: string, live: LiveStream): (() => void) | null {
    return this.#relay.observeChannel(channel, (publication) => {
      if (live.publicationsLeft === 0) {
        live.skipped++
        return
      }
      live.publicationsLeft--
      // The first publication of a second is complete, whatever its size.
      const maxLength = live.bytesLeft > 0 ? Number.POSITIVE_INFINITY : PREVIEW_LENGTH
      live.bytesLeft -= publication.data.length
      const isSent = live.stream.send(eventText('publication', livePublication(channel, publication, maxLength)))
      if (!isSent) live.skipped++
    })
  }
}
