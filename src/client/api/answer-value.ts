import { ApiError } from './api-error.js'

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i

/** What a success says: JSON as its value, nothing as null, anything else as the text it is. */
export const answerValue = (status: number, contentType: string | null, text: string): unknown => {
  if (text === '') return null
  if (!JSON_TYPE.test(contentType ?? '')) return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ApiError({
      code: 'UNEXPECTED_ANSWER',
      message: 'The answer is not the JSON it claims to be.',
      status,
      cause
    })
  }
}

export const responseValue = async (response: Response): Promise<unknown> =>
  answerValue(response.status, response.headers.get('content-type'), await response.text())
