import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { isApiPath, SERVED_METHODS, STRICT_AREAS } from '../access.js'
import { GatewayError } from '../errors.js'
import { HOST } from '../request-context.js'
import { canonicalPath } from '../request-path.js'

// Rules, router, forwarder and backend must all see the same path. They parse it separately, so a path that two parsers
// could read differently is refused, never repaired: a repaired path is a second string that somebody forgets to use.

/** Longer request targets are refused as such. */
export const MAX_URL_LENGTH = 8192

/** Declared and strict paths as a tree of segments. */
interface PathNode {
  /** The segment as it is declared. */
  readonly segment: string
  /** What may follow, by its folded form. */
  readonly literals: Map<string, PathNode>
  parameter: PathNode | null
  /** A declared path ends here. */
  isDeclared: boolean
  /** This path and everything below it is strict. */
  isStrict: boolean
}

const newNode = (segment: string): PathNode => ({
  segment,
  literals: new Map(),
  parameter: null,
  isDeclared: false,
  isStrict: false
})

/**
 * Knows the paths that rules and schemas are tied to, so that a look-alike of one cannot slip past them to a backend that
 * ignores letter case, a trailing slash, or the difference between a character and its encoded or compatibility form.
 */
export class KnownPaths {
  readonly #root = newNode('')
  #depth = 0
  /** Whether no declared path has a capital or an encoded character. */
  #isFolded = true

  /** Templates as the router takes them: `/api/zones/:id`. */
  constructor(templates: Iterable<string>) {
    for (const template of templates) this.#add(template).isDeclared = true
    for (const area of STRICT_AREAS) this.#add(`/api/${area}`).isStrict = true
  }

  /** Whether a canonical path is another form of a declared or strict path, and not that path itself. */
  isMisspelt(path: string): boolean {
    const slashAtEnd = path.endsWith('/')
    if (this.#isFolded && !slashAtEnd && !HAS_OTHER_FORM.test(path)) return false
    // One segment more than the longest known path is enough to see that it is none of them.
    const segments = path.slice(1, slashAtEnd ? -1 : undefined).split('/', this.#depth + 1)
    return leadsToOtherPath(this.#root, segments, 0, !slashAtEnd)
  }

  #add(template: string): PathNode {
    const segments = template.slice(1).split('/')
    this.#depth = Math.max(this.#depth, segments.length)
    return segments.reduce((node, segment) => {
      if (segment.startsWith(':')) {
        node.parameter ??= newNode(segment)
        return node.parameter
      }
      const folded = foldedForm(segment)
      this.#isFolded &&= folded === segment
      const child = node.literals.get(folded) ?? newNode(segment)
      node.literals.set(folded, child)
      return child
    }, this.#root)
  }
}

/** Every path is followed: `/api/users/Roles` is a user to the router, and the list of roles to another server. */
const leadsToOtherPath = (node: PathNode, segments: readonly string[], index: number, isExact: boolean): boolean => {
  if (node.isStrict && !isExact) return true
  const segment = segments[index]
  if (segment === undefined) return node.isDeclared && !isExact
  const literal = node.literals.size === 0 ? undefined : node.literals.get(foldedForm(segment))
  if (literal && leadsToOtherPath(literal, segments, index + 1, isExact && literal.segment === segment)) return true
  return node.parameter !== null && leadsToOtherPath(node.parameter, segments, index + 1, isExact)
}

// In a canonical path, other characters are the same in every form.
const HAS_OTHER_FORM = /[A-Z%]/

/** What a server that decodes, normalises and ignores letter case makes of a segment. */
const foldedForm = (segment: string): string => {
  if (!HAS_OTHER_FORM.test(segment)) return segment
  if (!segment.includes('%')) return segment.toLowerCase()
  // To upper case first, because servers that compare in upper case take a dotless i for an i. The dot that is left of a
  // capital I with a dot is dropped: the Turkish lower case of that letter is i.
  return decodeURIComponent(segment).normalize('NFKC').toUpperCase().toLowerCase().replaceAll('\u0307', '')
}

/** Before any rule is asked: the request must have one path, one host, and a version and method that we serve. */
export const requireCanonicalPath = (app: FastifyInstance, knownPaths: KnownPaths): void => {
  app.addHook('onRequest', (request, _reply, done) => {
    const { url = '', httpVersion, rawHeaders, headers } = request.raw
    if (url.length > MAX_URL_LENGTH) return done(new GatewayError('URI_TOO_LONG'))
    if (httpVersion !== '1.1' && httpVersion !== '1.0') return done(new GatewayError('MALFORMED_REQUEST'))
    const hosts = hostCount(rawHeaders)
    if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return done(new GatewayError('MALFORMED_REQUEST'))
    if (!HOST.test(headers.host ?? '')) return done(new GatewayError('MALFORMED_REQUEST'))
    // The parser takes a compressed body in chunks too, and hands it over as if it were not compressed.
    if (!isPlainTransfer(headers['transfer-encoding'])) return done(new GatewayError('MALFORMED_REQUEST'))

    const path = canonicalPath(url)
    if (path === null || knownPaths.isMisspelt(path)) return done(new GatewayError('AMBIGUOUS_PATH'))
    request.path = path
    if (!SERVED_METHODS.has(request.method)) return done(methodNotServed(path))
    done()
  })
}

/** Refused here and not by the router, because the framework would look at the body of some of these methods first. */
const methodNotServed = (path: string): GatewayError =>
  isApiPath(path)
    ? new GatewayError('METHOD_NOT_ALLOWED', { headers: { allow: [...SERVED_METHODS].join(', ') } })
    : new GatewayError('NOT_FOUND')

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

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)([^#]*)$/i

/**
 * RFC 9112: a server must accept `GET http://host/path`. Such a target becomes its path and query if its authority equals
 * the Host header, which clients must send alike. Any other target stays as it is, and is refused as ambiguous.
 */
export const originForm = ({ url = '', headers }: Pick<IncomingMessage, 'url' | 'headers'>): string => {
  if (url.startsWith('/')) return url
  const [, authority = '', rest = ''] = ABSOLUTE_FORM.exec(url) ?? []
  if (authority === '' || authority.toLowerCase() !== headers.host?.toLowerCase()) return url
  return rest.startsWith('/') ? rest : `/${rest}`
}
