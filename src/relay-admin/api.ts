import type { AdminSession, Problem } from '../relay/admin/contract.js'

/** An error response of the relay, or no response. */
export class RequestError extends Error {
  readonly status: number
  readonly code: string
  readonly retryAfterSeconds: number | null

  constructor(status: number, { code, message }: Problem['error'], retryAfterSeconds: number | null = null) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The text of a rejected or failed request. Rethrows any other error. */
export const requestErrorText = (cause: unknown): string => {
  if (cause instanceof RequestError) return cause.message
  throw cause
}

export interface GetOptions {
  readonly query?: Readonly<Record<string, string | number>>
  readonly signal?: AbortSignal
  /** The page refreshes by itself; the request does not extend the session. */
  readonly isAutomatic?: boolean
}

/** Sent with every POST; known after sign-in. */
let csrf = ''
let signedOut = (): void => undefined
let requestedAtMs = Date.now()

export const setCsrfToken = (token: string): void => {
  csrf = token
}

/** Registers the callback for a 401 response. */
export const onSignedOut = (callback: () => void): void => {
  signedOut = callback
}

/** Time of the last request that extends the session. */
export const lastRequestAtMs = (): number => requestedAtMs

export const get = async <Result>(path: string, options: GetOptions = {}): Promise<Result> => {
  const { query = {}, signal = null, isAutomatic = false } = options
  if (!isAutomatic) requestedAtMs = Date.now()
  const headers: Record<string, string> = isAutomatic ? { 'x-admin-refresh': '1' } : {}
  return (await request(addressOf(path, query), { headers, signal })).json()
}

/** A `body` of type string is JSON text. */
export const post = async (path: string, body: unknown = {}): Promise<Response> => {
  try {
    return await postOnce(path, body)
  } catch (cause) {
    if (!(cause instanceof RequestError) || cause.code !== 'CSRF_MISMATCH') throw cause
    // A new sign-in in another tab has replaced the session cookie.
    setCsrfToken((await get<AdminSession>('session')).csrf)
    return postOnce(path, body)
  }
}

const postOnce = (path: string, body: unknown): Promise<Response> => {
  requestedAtMs = Date.now()
  const headers = { 'content-type': 'application/json', 'x-admin-csrf': csrf }
  return request(addressOf(path), {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body)
  })
}

/** Empty fields of the query are left out. */
export const addressOf = (path: string, query: GetOptions['query'] = {}): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== '') search.set(name, String(value))
  return `${import.meta.env.BASE_URL}api/${path}${search.size > 0 ? `?${search}` : ''}`
}

const request = async (address: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(address, init).catch((cause: unknown) => {
    if (init.signal?.aborted) throw cause
    throw new RequestError(0, { code: 'UNREACHABLE', message: 'The relay does not respond.' })
  })
  if (response.ok) return response
  const error = new RequestError(
    response.status,
    await problemOf(response),
    secondsOf(response.headers.get('retry-after'))
  )
  if (response.status === 401) signedOut()
  throw error
}

/** A proxy may respond with a body of its own. */
const problemOf = async (response: Response): Promise<Problem['error']> => {
  const body: Partial<Problem> | null = await response.json().catch(() => null)
  return body?.error ?? { code: 'UNKNOWN', message: `The relay responded with ${response.status}.` }
}

const secondsOf = (header: string | null): number | null => {
  const seconds = Number(header)
  return header !== null && Number.isFinite(seconds) ? seconds : null
}
