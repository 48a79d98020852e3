import { newXhr as browserXhr, documentCookies, type Xhr } from '../browser.js'
import { buildCalls } from './calls.js'
import { CsrfToken } from './csrf-token.js'
import { fetchHttp, type Http, type OnSettled, observe } from './http.js'
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
  readonly onSettled?: OnSettled
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
  const observed = observe(baseUrl, onSettled)
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
