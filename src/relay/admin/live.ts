import { channelKind, isTooLong } from '../core/channels.js'
import type { Context } from '../core/context.js'
import { ReplyError } from '../core/errors.js'
import { tapChannel } from '../core/tap.js'
import type { AdminCall } from './call.js'
import { sessionCookie } from './cookies.js'
import { EventStream, eventText } from './event-stream.js'
import type { Gatherer } from './gatherer.js'
import { SECURITY_HEADERS } from './headers.js'
import { shownPublication } from './publications.js'
import type { Sessions } from './sessions.js'

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
  readonly #context: Context
  readonly #sessions: Sessions
  readonly #gatherer: Gatherer
  readonly #streams = new Set<Live>()
  #looking: NodeJS.Timeout | null = null

  constructor(context: Context, sessions: Sessions, gatherer: Gatherer) {
    this.#context = context
    this.#sessions = sessions
    this.#gatherer = gatherer
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
      stream: new EventStream(response, [...SECURITY_HEADERS, ...call.cookie], this.#context.monotonicMs),
      room: PUBLICATIONS_PER_SECOND
    }
    const leave = this.#gatherer.add(live.stream)
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
    const context = this.#context
    const kind = channelKind(channel, context.channels)
    if (kind instanceof ReplyError || isTooLong(channel, context.channels)) return null
    return tapChannel(context, channel, kind, (publication) => {
      if (live.room-- > 0) live.stream.send(eventText('publication', shownPublication(channel, publication)))
    })
  }
}
