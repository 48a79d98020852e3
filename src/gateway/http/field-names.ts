import { GatewayError } from '../errors.js'

// Names of query parameters and body fields as backends may read them.

/** The names in the query of a request target. Some backends separate parameters by `;` too. */
export const queryNames = (target: string): string[] => [
  ...new URLSearchParams(queryOf(target).replaceAll(';', '&')).keys()
]

const queryOf = (target: string): string => {
  const start = target.indexOf('?')
  return start === -1 ? '' : target.slice(start + 1)
}

/**
 * The field names that a backend may find in a name, in lower case: some ignore case and white space, and most read
 * `groups[]`, `groups[0]`, `[groups]` or `user.groups` as a field `groups`. PHP reads `.method` as `_method`.
 */
export const fieldsIn = (name: string): string[] => {
  const folded = name.toLowerCase()
  return [...folded.split(/[\s.[\]\0]+/), phpName(folded)]
}

/** PHP removes leading white space, cuts a name off at a bracket or a zero byte, and replaces dots and blanks. */
const phpName = (name: string): string =>
  name
    .trimStart()
    .replace(/[[\0].*$/s, '')
    .replaceAll(/[. ]/g, '_')

/** The field by which Symfony, Laravel, Rails and others replace the method of a request. */
export const METHOD_FIELD = '_method'

export const methodFieldError = (): GatewayError =>
  new GatewayError('VALIDATION_FAILED', {
    details: [
      { path: `/${METHOD_FIELD}`, message: 'is not allowed: a backend could process the request with another method' }
    ]
  })

/** Whether a backend may process the request with the method that its query names. */
export const overridesMethod = (target: string): boolean =>
  // The common case: neither the name nor an encoded form of it.
  /method|%/i.test(queryOf(target)) && queryNames(target).some((name) => fieldsIn(name).includes(METHOD_FIELD))
