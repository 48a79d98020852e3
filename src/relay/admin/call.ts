import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { MaybePromise } from '../core/maybe-promise.js'
import { answer, type Headers, JSON_TYPE, readBody } from '../edge/http-answer.js'
import type { Problem } from './contract.js'
import { NO_STORE, SECURITY_HEADERS } from './headers.js'
import type { SessionClaims } from './session-keys.js'

/** One request of the page, and the ways to answer it. */
export class AdminCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly query: URLSearchParams
  readonly address: string
  /** Null at the doors that need none. */
  session: SessionClaims | null = null
  /** A cookie to be set along with the answer. */
  cookie: Headers = []

  constructor(request: IncomingMessage, response: ServerResponse, address: string) {
    const { url = '' } = request
    this.request = request
    this.response = response
    this.query = new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')
    this.address = address
  }

  get headers(): Headers {
    return [...SECURITY_HEADERS, ...NO_STORE, ...this.cookie]
  }

  nothing(status: 204 = 204): void {
    this.#end(status, '', [])
  }

  json(value: unknown): void {
    this.#end(200, JSON.stringify(value), JSON_TYPE)
  }

  refuse(status: number, code: string, message: string, headers: Headers = []): void {
    const problem: Problem = { error: { code, message } }
    this.#end(status, JSON.stringify(problem), [...JSON_TYPE, ...headers])
  }

  /** Hands over the body's text and what it says, once it fits; everything else is answered here. Fails as `then` does. */
  async body<Schema extends TSchema>(
    schema: Schema,
    maxBytes: number,
    then: (value: Static<Schema>, text: string) => MaybePromise<void>
  ): Promise<void> {
    if (!/^application\/json *(?:;|$)/i.test(this.request.headers['content-type'] ?? '')) {
      this.refuse(415, 'NOT_JSON', 'The body must have the type application/json.')
      return
    }
    if (Number(this.request.headers['content-length'] ?? 0) > maxBytes) {
      this.refuse(413, 'TOO_LARGE', `The body must not be longer than ${maxBytes} bytes.`)
      return
    }
    // Of a request that breaks off nothing comes.
    const bytes = await new Promise<Buffer>((done) => {
      readBody(this.request, this.response, maxBytes, done, this.headers)
    })
    const text = bytes.toString()
    const value = parse(text)
    if (value === undefined) this.refuse(400, 'NOT_JSON', 'The body is not JSON.')
    else if (!Value.Check(schema, value)) this.refuse(400, 'BAD_REQUEST', faultOf(schema, value))
    else await then(value, text)
  }

  #end(status: number, body: string, headers: Headers): void {
    // Where a body was announced and not read, it is not waited for.
    const isRead = this.request.complete || this.request.method === 'GET'
    if (!isRead) this.request.resume()
    answer(this.response, status, body, [...headers, ...this.headers, ...(isRead ? [] : ['Connection', 'close'])])
  }
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const faultOf = (schema: TSchema, value: unknown): string => {
  const first = Value.Errors(schema, value).First()
  return `${first?.path.slice(1).replaceAll('/', '.') || 'The body'}: ${(first?.message ?? 'not valid').toLowerCase()}`
}
