import type { Xhr } from '../browser.js'
import { ApiError, noResponseError } from './api-error.js'
import { responseError } from './response-error.js'
import { responseBodyValue } from './response-value.js'

export interface Progress {
  readonly sentBytes: number
  /** Null if the browser does not know it. */
  readonly totalBytes: number | null
}

export interface UploadRequest {
  readonly method: string
  readonly url: string
  readonly form: FormData
  readonly headers: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  readonly onProgress: (progress: Progress) => void
}

/** Sends a form with XMLHttpRequest, because fetch does not report upload progress. */
export const upload = (newXhr: () => Xhr, request: UploadRequest): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const { signal, onProgress } = request
    if (signal?.aborted) {
      reject(noResponseError(null, signal))
      return
    }
    const xhr = newXhr()
    const abort = (): void => xhr.abort()
    const end = (settle: () => void) => (): void => {
      signal?.removeEventListener('abort', abort)
      settle()
    }
    const noResponse = end(() => reject(noResponseError(null, signal)))
    xhr.onload = end(() => {
      try {
        resolve(resultOf(xhr))
      } catch (error) {
        reject(error)
      }
    })
    xhr.onerror = noResponse
    xhr.onabort = noResponse
    xhr.ontimeout = noResponse
    xhr.upload.onprogress = ({ lengthComputable, loaded, total }) =>
      onProgress({ sentBytes: loaded, totalBytes: lengthComputable ? total : null })
    signal?.addEventListener('abort', abort, { once: true })
    xhr.open(request.method, request.url)
    xhr.setRequestHeader('accept', 'application/json')
    for (const [name, value] of Object.entries(request.headers)) xhr.setRequestHeader(name, value)
    xhr.send(request.form)
  })

const resultOf = (xhr: Xhr): unknown => {
  const { status, responseText } = xhr
  if (status === 0) throw new ApiError({ code: 'NETWORK_FAILED', message: 'The service cannot be reached.' })
  if (status >= 200 && status < 300)
    return responseBodyValue(status, xhr.getResponseHeader('content-type'), responseText)
  throw responseError({ status, text: responseText, header: (name) => xhr.getResponseHeader(name) })
}

/** A single file is sent as the field `file`. */
export const formOf = (content: Blob | FormData, field = 'file'): FormData => {
  if (content instanceof FormData) return content
  const form = new FormData()
  form.append(field, content)
  return form
}
