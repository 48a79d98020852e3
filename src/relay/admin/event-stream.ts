import type { ServerResponse } from 'node:http'
import { type Headers, LIVE } from '../edge/http-answer.js'
import type { LiveEvents } from './contract.js'

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
    response.writeHead(200, ['Content-Type', 'text/event-stream; charset=utf-8', ...LIVE, ...headers])
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
