import type { TSchema } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { ValueError } from '@sinclair/typebox/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type FieldFault, Refusal } from '../errors.js'

const MAX_FAULTS = 20

/**
 * Makes routes of this scope take JSON and nothing else. What is parsed here is what is forwarded: nobody downstream reads
 * the bytes again and finds another meaning in them.
 */
export const acceptJsonOnly = (scope: FastifyInstance): void => {
  const parseSafely = scope.getDefaultJsonParser('error', 'error')
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text: string, done) => {
    if (!isPlainUtf8(request)) return done(new Refusal('UNSUPPORTED_MEDIA_TYPE'))
    // Many clients announce JSON and then have nothing to say.
    if (text === '') return done(null, undefined)
    if (holdsInexactInteger(text)) return done(inexactInteger())
    parseSafely(request, text, (error, body) => {
      if (error) done(new Refusal('MALFORMED_BODY', { cause: error }))
      else done(null, body)
    })
  })
}

const isPlainUtf8 = ({ headers }: FastifyRequest): boolean => {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') return false
  return headers['content-encoding'] === undefined || headers['content-encoding'] === 'identity'
}

/** An integer that JavaScript would round on the way through, and the backend might not. */
const holdsInexactInteger = (text: string): boolean => {
  // Hardly any body has so many digits in a row: the rest is not looked at.
  if (!/\d{16}/.test(text)) return false
  const numbers = text.replace(/"(?:[^"\\]|\\.)*"/g, '""').match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g) ?? []
  return numbers.some((number) => /^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number)))
}

const inexactInteger = (): Refusal =>
  new Refusal('VALIDATION_FAILED', {
    details: [{ path: '', message: 'holds an integer that is too large for a JSON number; send it as text' }]
  })

/** Checks a body against its schema and writes it as the backend gets it; null where there is none. */
export type BodyWriter = (body: unknown) => string | null

export const bodyWriter = (schema: TSchema, optional: boolean): BodyWriter => {
  const compiled = TypeCompiler.Compile(schema)
  return (body) => {
    if (body === undefined || body === null) {
      if (optional && body === undefined) return null
      throw new Refusal('VALIDATION_FAILED', { details: [{ path: '', message: 'a JSON object is required' }] })
    }
    if (!compiled.Check(body)) {
      throw new Refusal('VALIDATION_FAILED', { details: faultsOf(compiled.Errors(body)) })
    }
    return written(body)
  }
}

const faultsOf = (errors: Iterable<ValueError>): FieldFault[] => {
  const faults = new Map<string, FieldFault>()
  for (const { path, message, schema } of errors) {
    if (!faults.has(path)) faults.set(path, { path, message: schema.errorMessage ?? message.toLowerCase() })
    if (faults.size === MAX_FAULTS) break
  }
  return [...faults.values()]
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
