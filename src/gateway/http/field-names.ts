import { GatewayError } from '../errors.js'
import { foldedText } from './folded-text.js'

// Names of query parameters and body fields as backends may read them.

/** The names in the query of a request target. Some backends separate parameters by `;` too. */
export const queryNames = (target: string): string[] => [
  // Node reads the bytes of a request line as Latin-1.
  ...new URLSearchParams(Buffer.from(queryOf(target), 'latin1').toString().replaceAll(';', '&')).keys()
]

const queryOf = (target: string): string => {
  const start = target.indexOf('?')
  return start === -1 ? '' : target.slice(start + 1)
}

/** The field by which Symfony, Laravel, Rails and others replace the method of a request. */
export const METHOD_FIELD = '_method'

/**
 * Whether a backend may read a name as `_method`: some ignore case and white space, and most read `_method[]`, `[_method]` or
 * `form._method` as a field of this name.
 */
const isMethodField = (name: string): boolean => {
  if (!MAY_BE_METHOD_FIELD.test(name)) return false
  const folded = foldedText(name)
  return folded.split(/[^\p{L}\p{N}_]+/u).includes(METHOD_FIELD) || phpName(folded) === METHOD_FIELD
}

const MAY_BE_METHOD_FIELD = /method|[^\x20-\x7e]/i

/** PHP removes leading white space, cuts a name off at a bracket or a zero byte, and replaces dots and blanks. */
const phpName = (name: string): string =>
  name
    .trimStart()
    .replace(/[[\0].*$/s, '')
    .replaceAll(/[. ]/g, '_')

export const methodFieldError = (): GatewayError =>
  new GatewayError('VALIDATION_FAILED', {
    details: [
      { path: `/${METHOD_FIELD}`, message: 'is not allowed: a backend could process the request with another method' }
    ]
  })

/** Whether a backend may process the request with the method that its query names. */
export const overridesMethod = (target: string): boolean =>
  // The common case: neither the name nor an encoded form of it.
  /method|[%\x80-\xff]/i.test(queryOf(target)) && queryNames(target).some(isMethodField)

/** Whether a backend may process the request with the method that a field of its body names. */
export const bodyOverridesMethod = (body: object): boolean => Object.keys(body).some(isMethodField)
