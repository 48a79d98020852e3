import { newXhr as browserXhr, documentCookies, type Xhr } from '../browser.js'
import { address, type Query } from './address.js'
import { CsrfToken } from './csrf-token.js'
import { fileName } from './file-name.js'
import { fetchHttp, type Http, type OnSettled, observe } from './http.js'
import { responseValue } from './response-value.js'
import { formOf, type Progress, upload } from './upload.js'

export interface CallerOptions {
  /** The gateway's address; by default the page's origin. */
  readonly baseUrl?: string
  readonly fetch?: typeof globalThis.fetch
  /** Creates the request of an upload with progress; by default the browser's XMLHttpRequest. */
  readonly newXhr?: () => Xhr
  /** Returns the cookies that scripts can read, as `document.cookie` does. */
  readonly cookies?: () => string
  readonly onSettled?: OnSettled
}

/** The options that every call has. */
export interface CallOptions {
  readonly query?: Query
  readonly signal?: AbortSignal
}

export interface RequestOptions extends CallOptions {
  /** Sent as JSON, except for texts, files and forms. */
  readonly body?: unknown
  /** `file`: resolves to the response as a `File`, with the name that the backend chose. */
  readonly as?: 'value' | 'file'
  /** Called while a file or form is sent. A file is then sent as the field `file` of a form. */
  readonly onProgress?: (progress: Progress) => void
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
  newXhr = browserXhr,
  cookies = documentCookies,
  onSettled = () => undefined
}: CallerOptions = {}): ApiCaller => {
  const observed = observe(baseUrl, onSettled)
  const plainHttp = fetchHttp(fetch)
  const http: Http = (request, read) => observed(request.url, plainHttp(request, read))
  const csrf = new CsrfToken(cookies, () => http({ method: 'GET', url: `${baseUrl}${CSRF_TOKEN_PATH}` }, responseValue))
  return async <Result>(method: string, path: string, options: RequestOptions = {}) => {
    const { query, signal, body, as, onProgress } = options
    const url = `${baseUrl}${address(path, undefined, query)}`
    const read = as === 'file' ? (response: Response) => fileOf(response, path) : responseValue
    const accept = as === 'file' ? ANY_TYPE : {}
    const send = (headers: Readonly<Record<string, string>>): Promise<unknown> =>
      onProgress !== undefined && isForm(body)
        ? observed(url, upload(newXhr, { method, url, form: formOf(body), headers, signal, onProgress }))
        : http({ method, url, signal, headers: { ...accept, ...contentType(body), ...headers }, ...bodyOf(body) }, read)
    const result = READING_METHODS.has(method)
      ? await send({})
      : await csrf.withToken((token) => send({ 'x-csrf-token': token }))
    // The caller declares the response type.
    return result as Result
  }
}

const ANY_TYPE = { accept: '*/*' }

const fileOf = async (response: Response, path: string): Promise<File> => {
  const blob = await response.blob()
  const name = fileName(response.headers.get('content-disposition')) ?? path.slice(path.lastIndexOf('/') + 1)
  return new File([blob], name, { type: blob.type })
}

const isForm = (body: unknown): body is Blob | FormData => body instanceof Blob || body instanceof FormData

/** Values that fetch sends as they are, with a content type of their own. */
const isRaw = (body: unknown): body is string | Blob | FormData => typeof body === 'string' || isForm(body)

const bodyOf = (body: unknown): { readonly body?: string | Blob | FormData } => {
  if (body === undefined) return {}
  return { body: isRaw(body) ? body : JSON.stringify(body) }
}

const contentType = (body: unknown): Readonly<Record<string, string>> =>
  body === undefined || isRaw(body) ? {} : { 'content-type': 'application/json' }
