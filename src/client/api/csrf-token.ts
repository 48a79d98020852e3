import { cookieValue } from '../cookie-value.js'
import { ApiError } from './api-error.js'

/** Requests a token from the gateway. The response sets the cookie and contains the same token. */
export type RequestToken = () => Promise<unknown>

/** The CSRF token of write requests. It is read from the cookie each time, because another tab may have got a new one. */
export class CsrfToken {
  readonly #cookies: () => string
  readonly #requestToken: RequestToken
  #pending: Promise<string> | null = null

  constructor(cookies: () => string, requestToken: RequestToken) {
    this.#cookies = cookies
    this.#requestToken = requestToken
  }

  async #current(): Promise<string> {
    return cookieValue(this.#cookies(), 'csrf_token') || this.#renew()
  }

  /** Concurrent calls share one request. */
  #renew(): Promise<string> {
    this.#pending ??= this.#request().finally(() => {
      this.#pending = null
    })
    return this.#pending
  }

  async #request(): Promise<string> {
    const response = await this.#requestToken()
    const token =
      typeof response === 'object' && response !== null && 'csrfToken' in response ? response.csrfToken : null
    if (typeof token === 'string' && token !== '') return token
    throw new ApiError({ code: 'UNEXPECTED_ANSWER', message: 'The service returned no CSRF token.' })
  }

  /** Runs a write request, and repeats it once with a new token if the gateway rejects the token. */
  async withToken<Result>(attempt: (token: string) => Promise<Result>): Promise<Result> {
    const token = await this.#current()
    try {
      return await attempt(token)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'CSRF_MISMATCH') throw error
      return attempt(await this.#renew())
    }
  }
}
