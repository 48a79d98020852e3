import type { FastifyInstance } from 'fastify'
import { Refusal } from '../errors.js'
import { canonicalPath, type KnownPaths, MAX_URL_LENGTH } from '../request-path.js'

/** Before any rule is asked: the request must have one path, one host and a version that we speak. */
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
    done()
  })
}

// A name or address, and a port: what else stands there is meant for somebody who builds an address from it.
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(?::\d{0,5})?$/

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
