import type { FastifyInstance } from 'fastify'
import { isApiPath, SERVED_METHODS } from '../access.js'
import { Refusal } from '../errors.js'
import { HOST } from '../forwarded.js'
import { canonicalPath, type KnownPaths, MAX_URL_LENGTH } from '../request-path.js'

/** Before any rule is asked: the request must have one path, one host, and a version and method that we serve. */
export const requireCanonicalPath = (app: FastifyInstance, knownPaths: KnownPaths): void => {
  app.addHook('onRequest', (request, _reply, done) => {
    const { url = '', httpVersion, rawHeaders, headers } = request.raw
    if (url.length > MAX_URL_LENGTH) return done(new Refusal('URI_TOO_LONG'))
    if (httpVersion !== '1.1' && httpVersion !== '1.0') return done(new Refusal('MALFORMED_REQUEST'))
    const hosts = hostCount(rawHeaders)
    if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return done(new Refusal('MALFORMED_REQUEST'))
    if (!HOST.test(headers.host ?? '')) return done(new Refusal('MALFORMED_REQUEST'))
    // The parser takes a compressed body in chunks too, and hands it over as if it were not compressed.
    if (!isPlainTransfer(headers['transfer-encoding'])) return done(new Refusal('MALFORMED_REQUEST'))

    const path = canonicalPath(url)
    if (path === null || knownPaths.isMisspelt(path)) return done(new Refusal('AMBIGUOUS_PATH'))
    request.path = path
    if (!SERVED_METHODS.has(request.method)) return done(methodNotServed(path))
    done()
  })
}

/** Refused here and not by the router, because the framework would look at the body of some of these methods first. */
const methodNotServed = (path: string): Refusal =>
  isApiPath(path)
    ? new Refusal('METHOD_NOT_ALLOWED', { headers: { allow: [...SERVED_METHODS].join(', ') } })
    : new Refusal('NOT_FOUND')

const isPlainTransfer = (coding: string | undefined): boolean =>
  coding === undefined || coding.toLowerCase() === 'chunked'

/** Node keeps the first of two Host headers, where the next hop may take the other. */
const hostCount = (rawHeaders: readonly string[]): number => {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts
}
