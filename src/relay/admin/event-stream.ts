import type { ServerResponse } from 'node:http'
import { type Headers, LIVE } from '../edge/http-answer.js'
import type { LiveEvents } from './contract.js'

/** What may wait for a page that does not read; what comes while more does is left out. */
const MAX_UNSENT_BYTES = 256 * 1024
const STUCK_MS = 30_000

/** An event as it is sent, made once for all who get it. */
export const eventText = <Name extends keyof LiveEvents>(name: Name, data: LiveEvents[Name]): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** Server-sent events to one page. */
export class EventStream {
  readonly #response: ServerResponse
  readonly #nowMs: () => number
  #stuckSince: number | null = null

  constructor(response: ServerResponse, headers: Headers, nowMs: () => number) {
    this.#response = response
    this.#nowMs = nowMs
    response.on('error', () => undefined)
    response.writeHead(200, ['Content-Type', 'text/event-stream; charset=utf-8', ...LIVE, ...headers])
    response.socket?.setNoDelay(true)
    response.socket?.setTimeout(0)
    response.write('retry: 2000\n\n')
  }

  /** What is left out is not missed: the next second tells more. */
  send(event: string): void {
    const response = this.#response
    if (response.writableLength <= MAX_UNSENT_BYTES) {
      this.#stuckSince = null
      response.write(event)
      return
    }
    const nowMs = this.#nowMs()
    this.#stuckSince ??= nowMs
    if (nowMs - this.#stuckSince >= STUCK_MS) response.destroy()
  }

  end(lastEvent = ''): void {
    this.#response.end(lastEvent)
  }
}
