import { newXhr as browserXhr, documentCookies, type Xhr } from '../browser.js'
import { responseValue } from './answer-value.js'
import type { ApiError } from './api-error.js'
import { buildCalls } from './calls.js'
import { CsrfToken } from './csrf-token.js'
import { fetchHttp, type Http } from './http.js'
import { type Api, operations } from './operations.js'
import { type UploadRequest, upload } from './upload.js'

export interface ApiOptions {
  /** Where the gateway is; the page's own origin unless given. */
  readonly baseUrl?: string
  readonly fetch?: typeof globalThis.fetch
  readonly newXhr?: () => Xhr
  /** The cookies that scripts can read, as `document.cookie` has them. */
  readonly cookies?: () => string
  /** Told after every answer, because any of them may have changed the session: the error, where there was one, and the path. */
  readonly onSettled?: (error: ApiError | null, path: string) => void
}

const CSRF_TOKEN_PATH = '/api/auth/csrf-token'

/** Every route of the gateway as a function. */
export const createApi = ({
  baseUrl = '',
  // Called by its name, because a browser's fetch refuses to be anybody's method.
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
      // Whatever a request ends with, if not with a success, is an ApiError.
      onSettled(error as ApiError, path)
      throw error
    }
  }
  const plainHttp = fetchHttp(fetch)
  const http: Http = (request, read) => observed(request.url, plainHttp(request, read))
  const askForToken = (): Promise<unknown> =>
    http({ method: 'GET', url: `${baseUrl}${CSRF_TOKEN_PATH}` }, responseValue)

  return operations(
    buildCalls({
      baseUrl,
      http,
      csrf: new CsrfToken(cookies, askForToken),
      upload: (request: UploadRequest) => observed(request.url, upload(newXhr, request))
    })
  )
}
