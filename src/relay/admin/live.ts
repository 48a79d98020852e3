import type { ServerResponse } from 'node:http'
import type { Publication } from '../core/broker.js'
import type { Relay } from '../core/relay.js'
import { type Headers, STREAM_HEADERS } from '../transport/respond.js'
import type { LiveEvents, LivePublication } from './contract.js'
import { type AdminCall, SECURITY_HEADERS, sessionCookie } from './guard.js'
import type { Sessions } from './sessions.js'
import type { SnapshotCollector } from './snapshots.js'

/** What may wait for a page that does not read; what comes while more does is left out. */
const MAX_UNSENT_BYTES = 256 * 1024
const STUCK_MS = 30_000
/** For the last event to be read. */
const FAREWELL_MS = 5000

/** An event as it is sent, made once for all who get it. */
export const eventText = <Name extends keyof LiveEvents>(name: Name, data: LiveEvents[Name]): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** Server-sent events to one page. */
export class EventStream {
  readonly #response: ServerResponse
  readonly #monotonicMs: () => number
  #stuckSince: number | null = null
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

  /** False where it was left out. */
  send(event: string): boolean {
    const response = this.#response
    if (this.#isEnded) return false
    if (response.writableLength <= MAX_UNSENT_BYTES) {
      this.#stuckSince = null
      response.write(event)
      return true
    }
    const nowMs = this.#monotonicMs()
    this.#stuckSince ??= nowMs
    if (nowMs - this.#stuckSince >= STUCK_MS) response.destroy()
    return false
  }

  /** Who does not read does not keep it open either. */
  end(lastEvent = ''): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const response = this.#response
    response.end(lastEvent)
    const closing = setTimeout(() => response.destroy(), FAREWELL_MS).unref()
    response.once('close', () => clearTimeout(closing))
  }
}

const MAX_LENGTH = 4096

/** As much of a publication as a person reads. */
export const shownPublication = (channel: string, { time, offset, data }: Publication): LivePublication => ({
  channel,
  time,
  offset,
  data: data.slice(0, MAX_LENGTH),
  isCut: data.length > MAX_LENGTH
})

const MAX_STREAMS = 100
const LOOK_MS = 1000
/** What a person can follow. */
const PUBLICATIONS_PER_SECOND = 20

interface Live {
  /** Read anew every second: the session may have ended, and so may the password that it began with. */
  readonly cookie: string
  readonly stream: EventStream
  /** Publications that still fit into this second. */
  room: number
}

/** The streams of all pages that are open. */
export class LiveStreams {
  readonly #relay: Relay
  readonly #sessions: Sessions
  readonly #collector: SnapshotCollector
  readonly #streams = new Set<Live>()
  #looking: NodeJS.Timeout | null = null

  constructor(relay: Relay, sessions: Sessions, collector: SnapshotCollector) {
    this.#relay = relay
    this.#sessions = sessions
    this.#collector = collector
  }

  open(call: AdminCall): void {
    if (this.#streams.size >= MAX_STREAMS) {
      call.refuse(503, 'TOO_MANY_STREAMS', 'Too many pages are open.')
      return
    }
    const channel = call.query.get('channel') ?? ''
    const { response } = call
    const live: Live = {
      cookie: sessionCookie(call.request) ?? '',
      stream: new EventStream(response, [...SECURITY_HEADERS, ...call.cookie], this.#relay.clocks.monotonicMs),
      room: PUBLICATIONS_PER_SECOND
    }
    const leave = this.#collector.add(live.stream)
    const untap = channel === '' ? null : this.#tap(channel, live)
    this.#streams.add(live)
    this.#looking ??= setInterval(() => this.#look(), LOOK_MS)
    response.once('close', () => {
      leave()
      untap?.()
      this.#streams.delete(live)
      if (this.#streams.size === 0) this.#rest()
    })
  }

  close(): void {
    for (const { stream } of this.#streams) stream.end()
    this.#rest()
  }

  /** Ends the streams of sessions that have ended. */
  #look(): void {
    for (const live of this.#streams) {
      live.room = PUBLICATIONS_PER_SECOND
      if (this.#sessions.read(live.cookie) === null) live.stream.end(eventText('end', null))
    }
  }

  #rest(): void {
    if (this.#looking !== null) clearInterval(this.#looking)
    this.#looking = null
  }

  #tap(channel: string, live: Live): (() => void) | null {
    return this.#relay.observeChannel(channel, (publication) => {
      if (live.room-- > 0) live.stream.send(eventText('publication', shownPublication(channel, publication)))
    })
  }
}
