import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify'
import type { DescribedPath } from '../../openapi/description.js'
import type { AccessLevel } from '../../shared/access-level.js'
import { AUTH_PREFIX, isUnder, READING_METHODS, SERVED_METHODS } from '../access.js'
import { limitedBody } from '../proxy/body-limit.js'
import type { Forward } from '../proxy/forward.js'
import { accessConfig } from './mount-routes.js'

export interface CatchAllOptions {
  readonly forward: Forward
  readonly uploadBytes: number
  /** In the syntax of the router. */
  readonly paths: readonly string[]
  readonly reads: readonly UndeclaredReads[]
}

/** Reading methods that a declared path does not have. */
export interface UndeclaredReads {
  readonly path: string
  readonly methods: readonly HTTPMethods[]
  readonly access: AccessLevel | null
}

/**
 * The reading methods that the paths of a description do not have, for paths with an access level of their own, and for
 * paths that also match another template: without a route, GET `/api/users/roles` would be GET `/api/users/{id}`.
 */
export const undeclaredReads = (paths: readonly DescribedPath[]): UndeclaredReads[] => {
  const templates = new TemplateTree()
  for (const { template } of paths) templates.add(template)
  return paths
    .filter(({ template }) => !isUnder(AUTH_PREFIX, template))
    .filter(({ template, access }) => access !== null || templates.countMatches(template) > 1)
    .map(({ path, access, operations }) => {
      const declared: readonly string[] = operations.map(({ method }) => method)
      const isDeclared = (method: string): boolean =>
        declared.includes(method) || (method === 'HEAD' && declared.includes('GET'))
      return { path, access, methods: [...READING_METHODS].filter((method) => !isDeclared(method)) }
    })
}

/** Path templates by segment. */
class TemplateTree {
  readonly #children = new Map<string, TemplateTree>()
  #isTemplate = false

  add(template: string): void {
    let node: TemplateTree = this
    for (const segment of keysOf(template)) {
      const child = node.#children.get(segment) ?? new TemplateTree()
      node.#children.set(segment, child)
      node = child
    }
    node.#isTemplate = true
  }

  /** How many templates match all paths of this template, itself among them. */
  countMatches(template: string): number {
    let nodes: TemplateTree[] = [this]
    for (const segment of keysOf(template)) {
      const keys = segment === PARAMETER ? [PARAMETER] : [segment, PARAMETER]
      nodes = nodes.flatMap((node) => keys.flatMap((key) => node.#children.get(key) ?? []))
    }
    return nodes.filter((node) => node.#isTemplate).length
  }
}

const PARAMETER = '{}'

const keysOf = (template: string): string[] =>
  template.split('/').map((segment) => (segment.includes('{') ? PARAMETER : segment))

/** Forwards requests to these paths without a route of their own, with a streamed body. */
export const catchAll = (app: FastifyInstance, { forward, uploadBytes, paths, reads }: CatchAllOptions): void => {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', async (request: FastifyRequest, body: Readable) =>
      limitedBody(request, body, uploadBytes)
    )

    // Fastify rejects a Content-Type that it cannot parse, but here the backend decides. The forwarder uses the headers of
    // the raw request.
    scope.addHook('preParsing', (request, _reply, _payload, done) => {
      if (request.headers['content-type'] !== undefined) request.headers = { 'content-type': UNPARSED_TYPE }
      done()
    })

    const forwarded = (methods: readonly HTTPMethods[], url: string, access: AccessLevel | null): void => {
      scope.route({
        method: [...methods],
        url,
        config: accessConfig(access),
        handler: (request, reply) => forward(request, reply, bodyOf(request))
      })
    }
    for (const { path, methods, access } of reads) if (methods.length > 0) forwarded(methods, path, access)
    for (const path of paths) forwarded([...SERVED_METHODS], path, null)
  })
}

const UNPARSED_TYPE = 'application/octet-stream'

/** OPTIONS needs no token, so its body is dropped: it could occupy a backend connection without end. */
const bodyOf = ({ method, body }: FastifyRequest): Readable | null =>
  // The only parser of this scope returns a stream.
  method === 'OPTIONS' ? null : ((body as Readable | undefined) ?? null)
