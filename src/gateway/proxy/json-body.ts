import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isObject } from '../../shared/is-object.js'
import { endOfString } from '../../shared/json-string.js'
import { GatewayError, toGatewayError } from '../errors.js'
import { bodyOverridesMethod, methodFieldError } from '../http/field-names.js'

/**
 * Makes the routes of this scope accept only JSON. The parsed value is serialised again for the backend, so that the
 * backend cannot read the original bytes differently.
 */
export const acceptJsonOnly = (scope: FastifyInstance): void => {
  scope.removeAllContentTypeParsers()
  parseJson(scope, (request, body) => {
    if (body === null && request.routeOptions.schema?.body !== undefined) throw objectRequired()
    return body
  })
}

/** Adds the parser of JSON bodies to a scope. `read` returns the body of the request, or throws its error. */
export const parseJson = (scope: FastifyInstance, read: (request: FastifyRequest, body: unknown) => unknown): void => {
  const parseSafely = scope.getDefaultJsonParser('error', 'error')
  scope.addContentTypeParser(JSON_TYPE, { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    if (!isPlainUtf8(request)) return done(new GatewayError('UNSUPPORTED_MEDIA_TYPE'))
    // Many clients send the content type without a body.
    if (bytes.length === 0) return done(null, undefined)
    // Decoding would replace invalid bytes.
    if (!isUtf8(bytes)) return done(new GatewayError('MALFORMED_BODY'))
    const text = bytes.toString()
    parseSafely(request, text, (error, body) => {
      if (error) return done(new GatewayError('MALFORMED_BODY', { cause: error }))
      if (holdsInexactNumber(text)) return done(inexactNumber())
      if (isObject(body) && bodyOverridesMethod(body)) return done(methodFieldError())
      try {
        done(null, read(request, body))
      } catch (rejected) {
        done(toGatewayError(rejected))
      }
    })
  })
}

// RFC 6839: types such as `application/merge-patch+json` are JSON. Fastify passes the type in lower case.
const JSON_TYPE = /^application\/(?:json|[\w.!#$&^+-]+\+json)(?:;|$)/

/** The media type of a JSON body without its parameters, for the serialised body. */
export const jsonMediaType = (contentType = 'application/json'): string =>
  contentType === 'application/json' ? contentType : contentType.replace(/;.*$/s, '').trim().toLowerCase()

// All charset parameters count: of two, the backend might use the other one.
const CHARSET = /charset[*\d]*\s*=\s*"?([^\s;"]*)/gi

// The WHATWG encoding standard gives UTF-8 both names.
const UTF8_NAMES: ReadonlySet<string> = new Set(['utf-8', 'utf8'])

const isPlainUtf8 = ({ headers }: FastifyRequest): boolean => {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') return false
  const contentType = headers['content-type'] ?? ''
  // The common case.
  return contentType === 'application/json' || charsetsOf(contentType).every((charset) => UTF8_NAMES.has(charset))
}

const charsetsOf = (contentType: string): string[] =>
  [...contentType.matchAll(CHARSET)].map(([, charset = '']) => charset.toLowerCase())

/**
 * Whether a number would change its value when it is serialised again, because a double cannot represent it. Only for
 * valid JSON.
 */
const holdsInexactNumber = (text: string): boolean => {
  // A double represents every number of 15 digits with an exponent of two digits, so most bodies are exact.
  if (!/[\d.]{16}|e[+-]?\d{3}/i.test(text)) return false
  const tokens = /"|-?\d[\d.eE+-]*/g
  for (let token = tokens.exec(text); token !== null; token = tokens.exec(text)) {
    if (token[0] === '"') tokens.lastIndex = endOfString(text, tokens.lastIndex)
    else if (!isExact(token[0])) return true
  }
  return false
}

const isExact = (number: string): boolean => {
  const value = Number(number)
  return Number.isFinite(value) && sameDecimal(decimalOf(number), decimalOf(String(value)))
}

/** The value `0.<digits> * 10^exponent`, without zeros at either end of the digits. */
interface Decimal {
  readonly digits: string
  readonly exponent: number
}

const sameDecimal = (one: Decimal, other: Decimal): boolean =>
  one.digits === other.digits && (one.digits === '' || one.exponent === other.exponent)

const decimalOf = (number: string): Decimal => {
  const [, whole = '', fraction = '', power = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e(.*))?$/i.exec(number) ?? []
  const digits = whole + fraction
  let start = 0
  while (digits[start] === '0') start += 1
  let end = digits.length
  while (end > start && digits[end - 1] === '0') end -= 1
  return { digits: digits.slice(start, end), exponent: whole.length - start + Number(power) }
}

/** Rejected here, because Fastify's validation does not distinguish it from a missing body. */
const objectRequired = (): GatewayError =>
  new GatewayError('VALIDATION_FAILED', { details: [{ path: '', message: 'a JSON object is required' }] })

const inexactNumber = (): GatewayError =>
  new GatewayError('VALIDATION_FAILED', {
    details: [{ path: '', message: 'holds a number that a double cannot represent exactly; send it as text' }]
  })

/** The parsed body as JSON for the backend; null without a body. */
export const jsonBody = ({ body }: FastifyRequest): string | null => {
  if (body === undefined) return null
  try {
    return JSON.stringify(body)
  } catch (error) {
    // JSON.parse accepts any depth; JSON.stringify exceeds the stack for half a million brackets.
    throw new GatewayError('VALIDATION_FAILED', {
      details: [{ path: '', message: 'is nested too deeply' }],
      cause: error
    })
  }
}
