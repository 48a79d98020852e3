import type { Problem, Session } from '../relay/admin/contract.js'

/** What the relay did not want, or could not. */
export class Refused extends Error {
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

export const messageOf = (cause: unknown): string => {
  if (cause instanceof Refused) return cause.message
  throw cause
}

export interface Question {
  readonly query?: Readonly<Record<string, string | number>>
  readonly signal?: AbortSignal
  /** Nobody asked for it but the page: it keeps nobody signed in. */
  readonly isByItself?: boolean
}

/** Sent with everything that changes something; known once somebody has signed in. */
let csrf = ''
let signedOut = (): void => undefined
let askedAtMs = Date.now()

export const rememberCsrf = (token: string): void => {
  csrf = token
}

/** Called when the relay says that there is no session. */
export const onSignedOut = (then: () => void): void => {
  signedOut = then
}

/** The relay ends a session that asks nothing for long. */
export const lastAskedAtMs = (): number => askedAtMs

export const get = async <Answer>(path: string, survey: Question = {}): Promise<Answer> => {
  const { query = {}, signal = null, isByItself = false } = survey
  if (!isByItself) askedAtMs = Date.now()
  const headers: Record<string, string> = isByItself ? { 'x-admin-refresh': '1' } : {}
  return (await exchange(addressOf(path, query), { headers, signal })).json()
}

export const post = async (path: string, body: unknown = {}): Promise<Response> => {
  try {
    return await postOnce(path, body)
  } catch (cause) {
    if (!(cause instanceof Refused) || cause.code !== 'CSRF_MISMATCH') throw cause
    // Somebody has signed in anew in another tab, and the browser has that session's cookie now.
    rememberCsrf((await get<Session>('session')).csrf)
    return postOnce(path, body)
  }
}

const postOnce = (path: string, body: unknown): Promise<Response> => {
  askedAtMs = Date.now()
  const headers = { 'content-type': 'application/json', 'x-admin-csrf': csrf }
  return exchange(addressOf(path), { method: 'POST', headers, body: JSON.stringify(body) })
}

export const addressOf = (path: string, query: Question['query'] = {}): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) search.set(name, String(value))
  return `${import.meta.env.BASE_URL}api/${path}${search.size > 0 ? `?${search}` : ''}`
}

const exchange = async (address: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(address, init).catch((cause: unknown) => {
    if (init.signal?.aborted) throw cause
    throw new Refused(0, { code: 'UNREACHABLE', message: 'The relay does not answer.' })
  })
  if (response.ok) return response
  const refused = new Refused(
    response.status,
    await problemOf(response),
    secondsOf(response.headers.get('retry-after'))
  )
  if (response.status === 401) signedOut()
  throw refused
}

/** A proxy in between answers in its own words. */
const problemOf = async (response: Response): Promise<Problem['error']> => {
  const body: Partial<Problem> | null = await response.json().catch(() => null)
  return body?.error ?? { code: 'UNKNOWN', message: `The relay answered with ${response.status}.` }
}

const secondsOf = (header: string | null): number | null => {
  const seconds = Number(header)
  return header !== null && Number.isFinite(seconds) ? seconds : null
}
