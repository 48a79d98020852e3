import { isUtf8 } from 'node:buffer'
import type { TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fieldFaults } from '../../../schemas/field-faults.js'
import { GatewayError } from '../errors.js'

/**
 * Makes routes of this scope take JSON and nothing else. What is parsed here is what is forwarded: nobody downstream reads
 * the bytes again and finds another meaning in them.
 */
export const acceptJsonOnly = (scope: FastifyInstance): void => {
  const parseSafely = scope.getDefaultJsonParser('error', 'error')
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(JSON_TYPE, { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    if (!isPlainUtf8(request)) return done(new GatewayError('UNSUPPORTED_MEDIA_TYPE'))
    // Many clients announce JSON and then have nothing to say.
    if (bytes.length === 0) return done(null, undefined)
    // Decoding would put a question mark in the place of what is no text.
    if (!isUtf8(bytes)) return done(new GatewayError('MALFORMED_BODY'))
    const text = bytes.toString()
    parseSafely(request, text, (error, body) => {
      if (error) done(new GatewayError('MALFORMED_BODY', { cause: error }))
      else if (holdsInexactNumber(text)) done(inexactNumber())
      else done(null, body)
    })
  })
}

// RFC 6839: `application/merge-patch+json` and its like are JSON. The framework gives the type in small letters.
const JSON_TYPE = /^application\/(?:json|[\w.!#$&^+-]+\+json)(?:;|$)/

/** The media type of a JSON body without its parameters, for the header of the body that is written anew. */
export const jsonMediaType = (contentType = 'application/json'): string =>
  contentType === 'application/json' ? contentType : contentType.replace(/;.*$/s, '').trim().toLowerCase()

// Every mention counts: of two, somebody further on might believe the other one.
const CHARSET = /charset[*\d]*\s*=\s*"?([^\s;"]*)/gi

// The WHATWG encoding standard gives UTF-8 both names.
const UTF8_NAMES: ReadonlySet<string> = new Set(['utf-8', 'utf8'])

const isPlainUtf8 = ({ headers }: FastifyRequest): boolean => {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') return false
  const contentType = headers['content-type'] ?? ''
  // What nearly everybody sends needs no second look.
  return contentType === 'application/json' || charsetsOf(contentType).every((charset) => UTF8_NAMES.has(charset))
}

const charsetsOf = (contentType: string): string[] =>
  [...contentType.matchAll(CHARSET)].map(([, charset = '']) => charset.toLowerCase())

/**
 * Whether a number would have another value once it is written anew, because a double cannot represent it. Only for text
 * that is JSON.
 */
const holdsInexactNumber = (text: string): boolean => {
  // A double keeps every number of 15 digits with an exponent of two digits, so most bodies need no second look.
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

/** By hand, because a pattern that looks for pairs of quotes takes minutes over some texts and ends the stack over others. */
const endOfString = (text: string, start: number): number => {
  let end = text.indexOf('"', start)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end + 1
}

const isEscaped = (text: string, place: number): boolean => {
  let first = place
  while (text[first - 1] === '\\') first -= 1
  return (place - first) % 2 === 1
}

const inexactNumber = (): GatewayError =>
  new GatewayError('VALIDATION_FAILED', {
    details: [{ path: '', message: 'holds a number that a double cannot represent exactly; send it as text' }]
  })

/** Checks a body against its schema and writes it as the backend gets it; null where there is none. */
export type BodyWriter = (body: unknown) => string | null

export const bodyWriter = (schema: TSchema, optional: boolean): BodyWriter => {
  const compiled = compiledOnce(schema)
  return (body) => {
    if (body === undefined || body === null) {
      if (optional && body === undefined) return null
      throw new GatewayError('VALIDATION_FAILED', { details: [{ path: '', message: 'a JSON object is required' }] })
    }
    if (!compiled.Check(body)) {
      throw new GatewayError('VALIDATION_FAILED', { details: fieldFaults(compiled.Errors(body)) })
    }
    return written(body)
  }
}

/** Parsing goes to any depth, writing does not: there a body of half a million brackets ends the stack. */
const written = (body: unknown): string => {
  try {
    return JSON.stringify(body)
  } catch (error) {
    throw new GatewayError('VALIDATION_FAILED', {
      details: [{ path: '', message: 'is nested too deeply' }],
      cause: error
    })
  }
}

/** However many routes take such a body. */
const checks = new WeakMap<TSchema, TypeCheck<TSchema>>()

const compiledOnce = (schema: TSchema): TypeCheck<TSchema> => {
  const known = checks.get(schema)
  if (known !== undefined) return known
  const check = TypeCompiler.Compile(schema)
  checks.set(schema, check)
  return check
}
