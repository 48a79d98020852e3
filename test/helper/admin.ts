import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { AdminSession, LiveEvents } from '../../src/relay/admin/contract.js'
import type { Teardown } from './child.js'
import { responseOf } from './exact-http.js'
import { type HttpResponse, type Message, send } from './http.js'

export const ADMIN_PASSWORD = 'a password for operators'

interface Listening {
  readonly url: string
}

/** A client of the admin API with the session of an operator. */
export class Operator {
  readonly url: string
  cookie = ''
  csrf = ''

  constructor({ url }: Listening) {
    this.url = url
  }

  get headers(): Record<string, string> {
    return { cookie: this.cookie, 'x-admin-csrf': this.csrf }
  }

  async get(path: string, message: Message = {}): Promise<HttpResponse> {
    return this.#storeCookie(
      await send(this.url, `/admin/api/${path}`, { ...message, headers: { cookie: this.cookie, ...message.headers } })
    )
  }

  async post(path: string, body: unknown = {}, message: Message = {}): Promise<HttpResponse> {
    const headers = { 'content-type': 'application/json', ...this.headers, ...message.headers }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return this.#storeCookie(
      await send(this.url, `/admin/api/${path}`, { method: 'POST', body: text, ...message, headers })
    )
  }

  async signIn(password = ADMIN_PASSWORD, message: Message = {}): Promise<HttpResponse> {
    const response = await this.post('sign-in', { password }, message)
    if (response.status === 204) this.csrf = (await this.read<AdminSession>('session')).csrf
    return response
  }

  /** The JSON of a successful response. `T` is the contract's type of this path. */
  async read<T>(path: string): Promise<T> {
    const { status, body } = await this.get(path)
    if (status !== 200) throw new Error(`${path}: ${status} ${body}`)
    return JSON.parse(body)
  }

  async live(t: Teardown, query = ''): Promise<LiveReader> {
    const request = httpRequest(`${this.url}/admin/api/live${query}`, {
      headers: { cookie: this.cookie, accept: 'text/event-stream' },
      agent: false
    })
    request.on('error', () => undefined)
    t.teardown(() => request.destroy())
    request.end()
    const response = await responseOf(request)
    return new LiveReader(response)
  }

  /** The figures of the last 15 minutes. */
  async history(t: Teardown): Promise<LiveEvents['history']> {
    const live = await this.live(t)
    const history = await live.next('history')
    live.close()
    await live.closed
    return history
  }

  #storeCookie(response: HttpResponse): HttpResponse {
    const [cookie] = response.headers['set-cookie'] ?? []
    if (cookie !== undefined) this.cookie = cookie.slice(0, cookie.indexOf(';'))
    return response
  }
}

export const operator = async (relay: Listening): Promise<Operator> => {
  const one = new Operator(relay)
  await one.signIn()
  return one
}

type EventName = keyof LiveEvents

/** Reads the events of a live stream. */
export class LiveReader {
  readonly response: IncomingMessage
  readonly closed: Promise<unknown>
  /** The latest event of each name. */
  readonly last: { -readonly [Name in EventName]?: LiveEvents[Name] } = {}
  readonly #waiters = new Set<(name: string) => void>()
  #text = ''

  constructor(response: IncomingMessage) {
    this.response = response
    response.on('error', () => undefined)
    this.closed = new Promise((resolve) => response.once('close', resolve))
    response.setEncoding('utf8')
    response.on('data', (text: string) => this.#parse(text))
  }

  get status(): number {
    return this.response.statusCode ?? 0
  }

  close(): void {
    this.response.destroy()
  }

  /** The next event of this name that matches. */
  next<Name extends EventName>(
    name: Name,
    matches: (data: LiveEvents[Name]) => boolean = () => true
  ): Promise<LiveEvents[Name]> {
    return new Promise((resolve) => {
      const wait = (eventName: string): void => {
        const data = this.last[name]
        if (eventName !== name || data === undefined || !matches(data)) return
        this.#waiters.delete(wait)
        resolve(data)
      }
      this.#waiters.add(wait)
    })
  }

  #parse(text: string): void {
    this.#text += text
    for (let end = this.#text.indexOf('\n\n'); end !== -1; end = this.#text.indexOf('\n\n')) {
      const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(this.#text.slice(0, end)) ?? []
      this.#text = this.#text.slice(end + 2)
      if (name !== '') this.#dispatch(name, JSON.parse(data))
    }
  }

  #dispatch(name: string, data: unknown): void {
    Object.assign(this.last, { [name]: data })
    for (const wait of [...this.#waiters]) wait(name)
  }
}
