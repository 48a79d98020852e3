import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from 'fastify'
import type { Description, Operation } from '../../openapi/description.js'
import { type Parameter, type ParameterValues, parameterErrors } from '../../openapi/parameters.js'
import { isStreamed, jsonValidator, mediaTypeOf, type OperationBody } from '../../openapi/request-body.js'
import type { FieldError, Validate } from '../../openapi/validators.js'
import { READING_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { limitedBody } from '../proxy/body-limit.js'
import type { Forward, ForwardedBody } from '../proxy/forward.js'
import { jsonBody, parseJson } from '../proxy/json-body.js'
import {
  accessConfig,
  otherMethods,
  rejectedRoute,
  requireBoundary,
  type UnknownPaths
} from '../routes/mount-routes.js'
import { schemaErrorFormatter, toValidationError } from '../routes/validation.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body that the operation of an OpenAPI description takes; null if it takes none. */
    operationBody?: OperationBody | null
    /** The path of the operation, which the URL of the route does not always tell. */
    template?: string
  }
}

export interface MountOperationsOptions {
  readonly forward: Forward
  readonly uploadBytes: number
  readonly unknownPaths: UnknownPaths
}

/** Registers the operations of an OpenAPI description, and rejects the methods that its paths do not have. */
export const mountOperations = (
  app: FastifyInstance,
  { paths, startRequest }: Pick<Description, 'paths' | 'startRequest'>,
  { forward, uploadBytes, unknownPaths }: MountOperationsOptions
): void => {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    parseJson(scope, (request, value) => {
      const body = request.routeOptions.config.operationBody
      const validate = body == null ? undefined : jsonValidator(body, contentTypeOf(request))
      if (validate === undefined) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
      return new JsonBody(value, validate)
    })
    scope.addContentTypeParser('*', async (request: FastifyRequest, payload: Readable) => {
      // Many clients send the content type without a body.
      if (request.headers['content-length'] === '0') return undefined
      const body = request.routeOptions.config.operationBody
      const type = contentTypeOf(request)
      if (body == null || !isStreamed(body, type)) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE')
      if (type === 'multipart/form-data') requireBoundary(request)
      return limitedBody(request, payload, uploadBytes)
    })
    scope.setSchemaErrorFormatter(schemaErrorFormatter)
    // Fastify validates all parts of a request right after this hook, in the same turn.
    scope.addHook('preValidation', (_request, _reply, done) => {
      startRequest()
      done()
    })
    for (const { path, access, operations } of paths) {
      const methods = operations.map(({ method }) => method)
      for (const operation of operations) {
        const validators = operationValidators(operation)
        scope.route({
          // HEAD needs the same access as GET.
          method: operation.method === 'GET' && !methods.includes('HEAD') ? ['GET', 'HEAD'] : operation.method,
          url: operation.path,
          config: { operationBody: operation.body, template: operation.template, ...accessConfig(operation.access) },
          schema: { hide: true, ...Object.fromEntries([...validators.keys()].map((part) => [part, {}])) },
          validatorCompiler: fastifyValidator(validators),
          handler: (request, reply) => forward(request, reply, forwardedBody(request))
        })
      }
      const rejected = otherMethods(path, methods, unknownPaths)
      if (rejected.methods.length > 0) rejectedRoute(scope, rejected.methods, path, rejected.error, access)
    }
  })
}

/** A JSON body with the validator of its media type. It serialises as its value. */
class JsonBody {
  readonly #value: unknown
  readonly #validate: Validate

  constructor(value: unknown, validate: Validate) {
    this.#value = value
    this.#validate = validate
  }

  errors(): readonly FieldError[] {
    return this.#validate(this.#value)
  }

  toJSON(): unknown {
    return this.#value
  }
}

const contentTypeOf = ({ headers }: FastifyRequest): string => mediaTypeOf(headers['content-type'] ?? '')

const forwardedBody = (request: FastifyRequest): ForwardedBody => {
  if (READING_METHODS.has(request.method)) return null
  return request.body instanceof Readable ? request.body : jsonBody(request)
}

const BODY_REQUIRED: readonly FieldError[] = [{ path: '', message: 'a body is required' }]

/** The validators of an operation by part of the request. */
const operationValidators = ({ parameters, body }: Operation): ReadonlyMap<string, Validate> => {
  const inPath = parameters.filter(({ routerName }) => routerName !== null)
  const inQuery = parameters.filter(({ routerName }) => routerName === null)
  const validators = new Map<string, Validate>()
  if (inPath.length > 0) validators.set('params', parameterValidator(inPath))
  if (inQuery.length > 0) validators.set('querystring', parameterValidator(inQuery))
  // Fastify passes null for a request without a body.
  const withoutBody = body?.isRequired === true ? BODY_REQUIRED : []
  if (body !== null) validators.set('body', (value) => (value === null ? withoutBody : bodyErrors(value)))
  return validators
}

const fastifyValidator =
  (validators: ReadonlyMap<string, Validate>): FastifySchemaCompiler<unknown> =>
  ({ httpPart = '' }) =>
  (value: unknown) => {
    const errors = validators.get(httpPart)?.(value) ?? []
    return errors.length === 0 || { error: errors.map(toValidationError) }
  }

const bodyErrors = (body: unknown): readonly FieldError[] => (body instanceof JsonBody ? body.errors() : [])

const parameterValidator =
  (parameters: readonly Parameter[]): Validate =>
  (values) =>
    // The router and the query parser return texts and lists of texts.
    parameterErrors(parameters, values as ParameterValues)
