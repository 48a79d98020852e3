import { cookieValue } from '../cookie-value.js'
import { ApiError } from './api-error.js'

/** Asks the gateway for a token; the answer sets the cookie, and holds the same token. */
export type AskForToken = () => Promise<unknown>

/**
 * The token that goes along with every mutation. It is read from the cookie each time, because another tab may have been
 * given a new one since: what counts is that cookie and header are the same when the request leaves.
 */
export class CsrfToken {
  readonly #cookies: () => string
  readonly #ask: AskForToken
  #asking: Promise<string> | null = null

  constructor(cookies: () => string, ask: AskForToken) {
    this.#cookies = cookies
    this.#ask = ask
  }

  async #current(): Promise<string> {
    return cookieValue(this.#cookies(), 'csrf_token') || this.#renewed()
  }

  /** However many calls need one at the same time, it is asked for once. */
  #renewed(): Promise<string> {
    this.#asking ??= this.#asked().finally(() => {
      this.#asking = null
    })
    return this.#asking
  }

  async #asked(): Promise<string> {
    const token = ((await this.#ask()) as { csrfToken?: unknown } | null)?.csrfToken
    if (typeof token === 'string' && token !== '') return token
    throw new ApiError({ code: 'UNEXPECTED_ANSWER', message: 'The service gave no CSRF token.' })
  }

  /** Makes a mutation; when its token was refused, once more with a new one. */
  async around<Result>(attempt: (token: string) => Promise<Result>): Promise<Result> {
    const token = await this.#current()
    try {
      return await attempt(token)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'CSRF_MISMATCH') throw error
      return attempt(await this.#renewed())
    }
  }
}
