import { ApiError, noResponseError } from './api-error.js'
import { responseError } from './response-error.js'

export interface HttpRequest {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Blob | FormData
  readonly signal?: AbortSignal | undefined
}

/** Sends one request and reads a successful response. Everything else is an `ApiError`. */
export type Http = <Result>(request: HttpRequest, read: (response: Response) => Promise<Result>) => Promise<Result>

/** Called after every response, because each may have changed the session. `path` has no query. */
export type OnSettled = (error: ApiError | null, path: string) => void

/** Calls `onSettled` when the request to this URL ends. */
export const observe =
  (baseUrl: string, onSettled: OnSettled) =>
  async <Result>(url: string, request: Promise<Result>): Promise<Result> => {
    const [path = ''] = url.slice(baseUrl.length).split('?')
    try {
      const result = await request
      onSettled(null, path)
      return result
    } catch (error) {
      // `Http` and `upload` throw nothing but ApiError.
      onSettled(error as ApiError, path)
      throw error
    }
  }

export const fetchHttp =
  (fetch: typeof globalThis.fetch): Http =>
  async ({ signal, ...request }, read) => {
    try {
      const response = await fetch(request.url, {
        method: request.method,
        headers: { accept: 'application/json', ...request.headers },
        credentials: 'same-origin',
        ...(request.body !== undefined && { body: request.body }),
        ...(signal && { signal })
      })
      if (response.ok) return await read(response)
      throw responseError({
        status: response.status,
        text: await response.text(),
        header: (name) => response.headers.get(name)
      })
    } catch (error) {
      // The connection may also break while the body is read.
      throw error instanceof ApiError ? error : noResponseError(error, signal)
    }
  }
