import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { toCanonicalPath } from '../../shared/request-path.js'
import { AUTH_PREFIX, INTERNAL_PREFIX, isUnder, SERVED_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { HOST, routeLabel } from '../http/client-request.js'
import { isSupportedExpectation } from '../http/expect-continue.js'
import { methodFieldError, overridesMethod } from '../http/field-names.js'
import type { KnownPaths } from '../http/known-paths.js'
import { isVariantBelow, templateWords, variantWords } from '../http/path-variants.js'
import { CLOSE, MAX_URL_LENGTH, tooManyHeaderLines } from '../http/request-target.js'
import { isForBackend } from '../upstreams/upstream.js'
import type { Upstreams } from '../upstreams/upstreams.js'

// Rules, router, forwarder and backend must all see the same path. They parse it separately, so a path that two parsers
// could read differently is rejected, never normalised: a normalised path is a second string that code may forget to use.

export interface CanonicalPathOptions {
  /** The paths that belong to no row. */
  readonly knownPaths: KnownPaths
  /** Prefixes below `/api/auth` that backends receive without a declaration. */
  readonly authPaths: readonly string[]
  /** Null if there are no rows. */
  readonly upstreams: Pick<Upstreams, 'selector' | 'via'> | null
}

/** Before any rule reads the path: the request must have one path, one host, and a version and method that we serve. */
export const canonicalPath = fp<CanonicalPathOptions>(
  async (app, { knownPaths, authPaths, upstreams }) => {
    app.addHook('onRequest', (request, _reply, done) => {
      const { url = '', httpVersion, rawHeaders, headers } = request.raw
      const tooManyLines = tooManyHeaderLines(request.raw)
      if (tooManyLines !== null) return done(tooManyLines)
      if (url.length > MAX_URL_LENGTH) return done(new GatewayError('URI_TOO_LONG'))
      if (httpVersion !== '1.1' && httpVersion !== '1.0') return done(new GatewayError('MALFORMED_REQUEST'))
      const hosts = hostCount(rawHeaders)
      if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return done(new GatewayError('MALFORMED_REQUEST'))
      if (!HOST.test(headers.host ?? '')) return done(new GatewayError('MALFORMED_REQUEST'))
      // Node's parser also accepts a compressed chunked body, and does not decompress it.
      if (!isPlainTransfer(headers['transfer-encoding'])) return done(new GatewayError('MALFORMED_REQUEST'))
      // RFC 9112: HTTP/1.0 has no chunked bodies, so the next hop may read another one.
      if (httpVersion === '1.0' && headers['transfer-encoding'] !== undefined)
        return done(new GatewayError('MALFORMED_REQUEST', CLOSE))
      if (!isSupportedExpectation(request.raw)) return done(new GatewayError('EXPECTATION_FAILED', CLOSE))

      if (upstreams !== null) {
        if (headers.via?.includes(upstreams.via)) return done(new GatewayError('LOOP_DETECTED'))
        request.upstream = upstreams.selector.select(request.raw)
      }
      const path = toCanonicalPath(url)
      if (path === null || (request.upstream?.knownPaths ?? knownPaths).isMisspelt(path))
        return done(new GatewayError('AMBIGUOUS_PATH'))
      request.path = path
      if (!SERVED_METHODS.has(request.method)) return done(methodNotServed(request))
      if (isHidden(request, authPaths)) return done(new GatewayError('NOT_FOUND'))
      if (isForBackend(request) && overridesMethod(url)) return done(methodFieldError())
      done()
    })
  },
  { name: 'canonical-path', fastify: '5.x', dependencies: ['security-headers'] }
)

const AUTH_WORDS = templateWords(AUTH_PREFIX)
const INTERNAL_WORDS = templateWords(INTERNAL_PREFIX)

/** Whether a path is one that no backend receives: neither that of the internal API, nor undeclared ones below `/api/auth`. */
const isHidden = (request: FastifyRequest, authPaths: readonly string[]): boolean => {
  const { path } = request
  if (isUnder(INTERNAL_PREFIX, path)) return true
  // Only a declaration that names the prefix counts, not one such as `/api/{area}/{id}`: its paths need no token.
  if (isUnder(AUTH_PREFIX, path))
    return !isUnder(AUTH_PREFIX, routeLabel(request)) && !authPaths.some((each) => isUnder(each, path))
  const words = variantWords(path)
  if (!isVariantBelow(AUTH_WORDS, words) && !isVariantBelow(INTERNAL_WORDS, words)) return false
  return routeLabel(request).endsWith('*')
}

/** Rejected here and not by the router, because Fastify would read the body of some of these methods first. */
const methodNotServed = (request: FastifyRequest): GatewayError =>
  isForBackend(request)
    ? new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow: [...SERVED_METHODS].join(', ') } })
    : new GatewayError('NOT_FOUND')

const isPlainTransfer = (coding: string | undefined): boolean =>
  coding === undefined || coding.toLowerCase() === 'chunked'

/** Node keeps the first of two Host headers; the next hop may use the other. */
const hostCount = (rawHeaders: readonly string[]): number => {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    // The index is below the length.
    const name = rawHeaders[index] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts
}
