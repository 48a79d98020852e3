import { newXhr as browserXhr, documentCookies, type Xhr } from '../browser.js'
import type { ApiError } from './api-error.js'
import { buildCalls } from './calls.js'
import { CsrfToken } from './csrf-token.js'
import { fetchHttp, type Http } from './http.js'
import { type Api, operations } from './operations.js'
import { responseValue } from './response-value.js'
import { type UploadRequest, upload } from './upload.js'

export interface ApiOptions {
  /** The gateway's address; by default the page's origin. */
  readonly baseUrl?: string
  readonly fetch?: typeof globalThis.fetch
  readonly newXhr?: () => Xhr
  /** Returns the cookies that scripts can read, as `document.cookie` does. */
  readonly cookies?: () => string
  /** Called after every response, because each may have changed the session. */
  readonly onSettled?: (error: ApiError | null, path: string) => void
}

const CSRF_TOKEN_PATH = '/api/auth/csrf-token'

/** Every route of the gateway as a function. */
export const createApi = ({
  baseUrl = '',
  // A browser's fetch throws if it is called as a method of another object.
  fetch = (input, init) => globalThis.fetch(input, init),
  newXhr = browserXhr,
  cookies = documentCookies,
  onSettled = () => undefined
}: ApiOptions = {}): Api => {
  const observed = async <Result>(url: string, request: Promise<Result>): Promise<Result> => {
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
  const plainHttp = fetchHttp(fetch)
  const http: Http = (request, read) => observed(request.url, plainHttp(request, read))
  const requestToken = (): Promise<unknown> =>
    http({ method: 'GET', url: `${baseUrl}${CSRF_TOKEN_PATH}` }, responseValue)

  return operations(
    buildCalls({
      baseUrl,
      http,
      csrf: new CsrfToken(cookies, requestToken),
      upload: (request: UploadRequest) => observed(request.url, upload(newXhr, request))
    })
  )
}
