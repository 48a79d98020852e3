import { documentCookies } from '../browser.js'
import { address, type Query } from './address.js'
import { CsrfToken } from './csrf-token.js'
import { fetchHttp, type Http, type OnSettled, observe } from './http.js'
import { responseValue } from './response-value.js'

export interface CallerOptions {
  /** The gateway's address; by default the page's origin. */
  readonly baseUrl?: string
  readonly fetch?: typeof globalThis.fetch
  /** Returns the cookies that scripts can read, as `document.cookie` does. */
  readonly cookies?: () => string
  readonly onSettled?: OnSettled
}

export interface RequestOptions {
  readonly query?: Query
  readonly signal?: AbortSignal
  /** Sent as JSON, except for texts, files and forms. */
  readonly body?: unknown
}

/** Sends one request to a path of the gateway. Resolves to the response's value, which is not validated, or rejects with `ApiError`. */
export type ApiCaller = <Result = unknown>(method: string, path: string, options?: RequestOptions) => Promise<Result>

const CSRF_TOKEN_PATH = '/api/auth/csrf-token'
const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Calls any path, with the CSRF token on write requests. `gatehouse client-api` generates typed functions for it. */
export const createCaller = ({
  baseUrl = '',
  // A browser's fetch throws if it is called as a method of another object.
  fetch = (input, init) => globalThis.fetch(input, init),
  cookies = documentCookies,
  onSettled = () => undefined
}: CallerOptions = {}): ApiCaller => {
  const observed = observe(baseUrl, onSettled)
  const plainHttp = fetchHttp(fetch)
  const http: Http = (request, read) => observed(request.url, plainHttp(request, read))
  const csrf = new CsrfToken(cookies, () => http({ method: 'GET', url: `${baseUrl}${CSRF_TOKEN_PATH}` }, responseValue))
  return async <Result>(method: string, path: string, { query, signal, body }: RequestOptions = {}) => {
    const url = `${baseUrl}${address(path, undefined, query)}`
    const send = (headers: Readonly<Record<string, string>>): Promise<Result> =>
      http({ method, url, signal, headers: { ...contentType(body), ...headers }, ...bodyOf(body) }, read<Result>)
    return READING_METHODS.has(method) ? send({}) : csrf.withToken((token) => send({ 'x-csrf-token': token }))
  }
}

// The caller declares the response type.
const read = async <Result>(response: Response): Promise<Result> => (await responseValue(response)) as Result

/** Values that fetch sends as they are, with a content type of their own. */
const isRaw = (body: unknown): body is string | Blob | FormData =>
  typeof body === 'string' || body instanceof Blob || body instanceof FormData

const bodyOf = (body: unknown): { readonly body?: string | Blob | FormData } => {
  if (body === undefined) return {}
  return { body: isRaw(body) ? body : JSON.stringify(body) }
}

const contentType = (body: unknown): Readonly<Record<string, string>> =>
  body === undefined || isRaw(body) ? {} : { 'content-type': 'application/json' }
