import { ApiError } from './api-error.js'

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i

/** The value of a successful response: parsed JSON, null for an empty body, otherwise the text. */
export const responseBodyValue = (status: number, contentType: string | null, text: string): unknown => {
  if (text === '') return null
  if (!JSON_TYPE.test(contentType ?? '')) return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ApiError({
      code: 'UNEXPECTED_ANSWER',
      message: 'The response is not valid JSON.',
      status,
      cause
    })
  }
}

export const responseValue = async (response: Response): Promise<unknown> =>
  responseBodyValue(response.status, response.headers.get('content-type'), await response.text())
