import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { LiveEvents, Session } from '../../src/relay/admin/contract.js'
import type { Teardown } from './child.js'
import { type Answer, type Message, send } from './http.js'

export const ADMIN_PASSWORD = 'a password for operators'

/** Where one relay answers. */
interface Listening {
  readonly url: string
}

/** An operator's browser, as far as the API goes. */
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

  async get(path: string, message: Message = {}): Promise<Answer> {
    return this.#keepCookie(
      await send(this.url, `/admin/api/${path}`, { ...message, headers: { cookie: this.cookie, ...message.headers } })
    )
  }

  async post(path: string, body: unknown = {}, message: Message = {}): Promise<Answer> {
    const headers = { 'content-type': 'application/json', ...this.headers, ...message.headers }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return this.#keepCookie(
      await send(this.url, `/admin/api/${path}`, { method: 'POST', body: text, ...message, headers })
    )
  }

  async signIn(password = ADMIN_PASSWORD, message: Message = {}): Promise<Answer> {
    const answer = await this.post('sign-in', { password }, message)
    if (answer.status === 204) this.csrf = (JSON.parse((await this.get('session')).body) as Session).csrf
    return answer
  }

  /** The JSON of an answer that went well. */
  async read<T>(path: string): Promise<T> {
    const { status, body } = await this.get(path)
    if (status !== 200) throw new Error(`${path}: ${status} ${body}`)
    return JSON.parse(body) as T
  }

  async live(t: Teardown, query = ''): Promise<LiveReader> {
    const request = httpRequest(`${this.url}/admin/api/live${query}`, {
      headers: { cookie: this.cookie, accept: 'text/event-stream' },
      agent: false
    })
    request.on('error', () => undefined)
    t.teardown(() => request.destroy())
    request.end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return new LiveReader(response)
  }

  #keepCookie(answer: Answer): Answer {
    const [cookie] = answer.headers['set-cookie'] ?? []
    if (cookie !== undefined) this.cookie = cookie.slice(0, cookie.indexOf(';'))
    return answer
  }
}

export const operator = async (relay: Listening): Promise<Operator> => {
  const one = new Operator(relay)
  await one.signIn()
  return one
}

type EventName = keyof LiveEvents

/** Takes the events of a live stream as they come. */
export class LiveReader {
  readonly response: IncomingMessage
  readonly closed: Promise<unknown>
  /** What was heard last of each kind. */
  readonly last: { -readonly [Name in EventName]?: LiveEvents[Name] } = {}
  readonly #waiting = new Set<(name: string, data: unknown) => void>()
  #text = ''

  constructor(response: IncomingMessage) {
    this.response = response
    response.on('error', () => undefined)
    this.closed = new Promise((resolve) => response.once('close', resolve))
    response.setEncoding('utf8')
    response.on('data', (text: string) => this.#take(text))
  }

  get status(): number {
    return this.response.statusCode ?? 0
  }

  close(): void {
    this.response.destroy()
  }

  /** The first event of the name from now on that is meant. */
  next<Name extends EventName>(
    name: Name,
    isMeant: (data: LiveEvents[Name]) => boolean = () => true
  ): Promise<LiveEvents[Name]> {
    return new Promise((resolve) => {
      const wait = (heard: string, data: unknown): void => {
        if (heard !== name || !isMeant(data as LiveEvents[Name])) return
        this.#waiting.delete(wait)
        resolve(data as LiveEvents[Name])
      }
      this.#waiting.add(wait)
    })
  }

  #take(text: string): void {
    this.#text += text
    for (let end = this.#text.indexOf('\n\n'); end !== -1; end = this.#text.indexOf('\n\n')) {
      const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(this.#text.slice(0, end)) ?? []
      this.#text = this.#text.slice(end + 2)
      if (name !== '') this.#hear(name, JSON.parse(data))
    }
  }

  #hear(name: string, data: unknown): void {
    Object.assign(this.last, { [name]: data })
    for (const wait of [...this.#waiting]) wait(name, data)
  }
}
