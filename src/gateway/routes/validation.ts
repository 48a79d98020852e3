import { KindGuard, type TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import type { FastifySchemaCompiler } from 'fastify'
import type { FastifySchemaValidationError } from 'fastify/types/schema.js'
import { fieldErrors } from '../../../schemas/field-errors.js'
import { GatewayError } from '../errors.js'

/**
 * Compiles schemas with TypeBox. Not with the compiler of `@fastify/type-provider-typebox`: that one collects all errors of
 * a body, however many there are, and drops the details that our messages need. Its types have no use here, because routes
 * are registered from tables.
 */
export const validatorCompiler =
  (bodyOptional: boolean): FastifySchemaCompiler<unknown> =>
  ({ schema, httpPart }) => {
    if (!KindGuard.IsSchema(schema)) throw new TypeError('not a TypeBox schema')
    const compiled = compileOnce(schema)
    return (value: unknown) => {
      // Fastify passes null for a request without a body. The JSON parser has rejected the body `null`.
      if (value === null && httpPart === 'body') return bodyOptional || { error: BODY_REQUIRED }
      return compiled.Check(value) || { error: fieldErrors(compiled.Errors(value)).map(toValidationError) }
    }
  }

/** An error in the form that Fastify passes to `schemaErrorFormatter`. */
export const toValidationError = ({ path, message }: { readonly path: string; readonly message: string }) => ({
  keyword: '',
  instancePath: path,
  schemaPath: '',
  params: {},
  message
})

const BODY_REQUIRED = [toValidationError({ path: '', message: 'a JSON object is required' })]

export const schemaErrorFormatter = (errors: readonly FastifySchemaValidationError[]): GatewayError =>
  new GatewayError('VALIDATION_FAILED', {
    details: errors.map(({ instancePath, message = '' }) => ({ path: instancePath, message }))
  })

/** Many routes share a schema. */
const compiledSchemas = new WeakMap<TSchema, TypeCheck<TSchema>>()

export const compileOnce = (schema: TSchema): TypeCheck<TSchema> => {
  const known = compiledSchemas.get(schema)
  if (known !== undefined) return known
  const compiled = TypeCompiler.Compile(schema)
  compiledSchemas.set(schema, compiled)
  return compiled
}
