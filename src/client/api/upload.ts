import type { Xhr } from '../browser.js'
import { answerValue } from './answer-value.js'
import { ApiError, withoutAnswer } from './api-error.js'
import { refused } from './refused.js'

export interface Progress {
  readonly sentBytes: number
  /** Null where the browser does not know. */
  readonly totalBytes: number | null
}

export interface UploadRequest {
  readonly url: string
  readonly form: FormData
  readonly headers: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/** Sends a form. Not with fetch, which does not say how far it has come. */
export const upload = (newXhr: () => Xhr, request: UploadRequest): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const { signal, onProgress } = request
    if (signal?.aborted) {
      reject(withoutAnswer(null, signal))
      return
    }
    const xhr = newXhr()
    const abort = (): void => xhr.abort()
    const end = (settle: () => void) => (): void => {
      signal?.removeEventListener('abort', abort)
      settle()
    }
    const unanswered = end(() => reject(withoutAnswer(null, signal)))
    xhr.onload = end(() => {
      try {
        resolve(answerOf(xhr))
      } catch (error) {
        reject(error)
      }
    })
    xhr.onerror = unanswered
    xhr.onabort = unanswered
    xhr.ontimeout = unanswered
    if (onProgress) {
      xhr.upload.onprogress = ({ lengthComputable, loaded, total }) =>
        onProgress({ sentBytes: loaded, totalBytes: lengthComputable ? total : null })
    }

    signal?.addEventListener('abort', abort, { once: true })
    xhr.open('POST', request.url)
    for (const [name, value] of Object.entries(request.headers)) xhr.setRequestHeader(name, value)
    xhr.send(request.form)
  })

const answerOf = (xhr: Xhr): unknown => {
  const { status, responseText } = xhr
  if (status === 0) throw new ApiError({ code: 'NETWORK_FAILED', message: 'The service cannot be reached.' })
  if (status >= 200 && status < 300) return answerValue(status, xhr.getResponseHeader('content-type'), responseText)
  throw refused({ status, text: responseText, header: (name) => xhr.getResponseHeader(name) })
}

/** A file by itself is sent as the field that backends look for first. */
export const formOf = (content: Blob | FormData, field = 'file'): FormData => {
  if (content instanceof FormData) return content
  const form = new FormData()
  form.append(field, content)
  return form
}
