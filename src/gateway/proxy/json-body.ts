import { isUtf8 } from 'node:buffer'
import type { TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fieldFaults } from '../../../schemas/field-faults.js'
import { Refusal } from '../errors.js'

/**
 * Makes routes of this scope take JSON and nothing else. What is parsed here is what is forwarded: nobody downstream reads
 * the bytes again and finds another meaning in them.
 */
export const acceptJsonOnly = (scope: FastifyInstance): void => {
  const parseSafely = scope.getDefaultJsonParser('error', 'error')
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    if (!isPlainUtf8(request)) return done(new Refusal('UNSUPPORTED_MEDIA_TYPE'))
    // Many clients announce JSON and then have nothing to say.
    if (bytes.length === 0) return done(null, undefined)
    // Decoding would put a question mark in the place of what is no text.
    if (!isUtf8(bytes)) return done(new Refusal('MALFORMED_BODY'))
    const text = bytes.toString()
    parseSafely(request, text, (error, body) => {
      if (error) done(new Refusal('MALFORMED_BODY', { cause: error }))
      else if (holdsInexactNumber(text)) done(inexactNumber())
      else done(null, body)
    })
  })
}

// Every mention counts: of two, somebody further on might believe the other one.
const CHARSET = /charset[*\d]*\s*=\s*"?([^\s;"]*)/gi

const isPlainUtf8 = ({ headers }: FastifyRequest): boolean => {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') return false
  const contentType = headers['content-type'] ?? ''
  // What nearly everybody sends needs no second look.
  return contentType === 'application/json' || charsetsOf(contentType).every((charset) => charset === 'utf-8')
}

const charsetsOf = (contentType: string): string[] =>
  [...contentType.matchAll(CHARSET)].map(([, charset = '']) => charset.toLowerCase())

/**
 * A number that would be another one on the way through: an integer that JavaScript rounds and the backend might not, or
 * one so large that it would be written as null. Only for text that is JSON.
 */
const holdsInexactNumber = (text: string): boolean => {
  // Hardly any body has so many digits in a row, or such an exponent: the rest is not looked at.
  if (!/\d{16}|e\+?\d{3}/i.test(text)) return false
  const tokens = /"|-?\d[\d.eE+-]*/g
  for (let token = tokens.exec(text); token !== null; token = tokens.exec(text)) {
    if (token[0] === '"') tokens.lastIndex = endOfString(text, tokens.lastIndex)
    else if (!isExact(token[0])) return true
  }
  return false
}

const isExact = (number: string): boolean => {
  const value = Number(number)
  return Number.isSafeInteger(value) || (Number.isFinite(value) && !/^-?\d+(?:\.0+)?$/.test(number))
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

const inexactNumber = (): Refusal =>
  new Refusal('VALIDATION_FAILED', {
    details: [{ path: '', message: 'holds a number that is too large to be exact; send it as text' }]
  })

/** Checks a body against its schema and writes it as the backend gets it; null where there is none. */
export type BodyWriter = (body: unknown) => string | null

export const bodyWriter = (schema: TSchema, optional: boolean): BodyWriter => {
  const compiled = compiledOnce(schema)
  return (body) => {
    if (body === undefined || body === null) {
      if (optional && body === undefined) return null
      throw new Refusal('VALIDATION_FAILED', { details: [{ path: '', message: 'a JSON object is required' }] })
    }
    if (!compiled.Check(body)) {
      throw new Refusal('VALIDATION_FAILED', { details: fieldFaults(compiled.Errors(body)) })
    }
    return written(body)
  }
}

/** Parsing goes to any depth, writing does not: there a body of half a million brackets ends the stack. */
const written = (body: unknown): string => {
  try {
    return JSON.stringify(body)
  } catch (error) {
    throw new Refusal('VALIDATION_FAILED', {
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
