import type { IncomingMessage } from 'node:http'
import fp from 'fastify-plugin'
import { hasTooManyHeaderLines } from '../../shared/header-lines.js'
import { isApiPath, SERVED_METHODS } from '../access.js'
import { GatewayError } from '../errors.js'
import { methodFieldError, overridesMethod } from '../field-names.js'
import { HOST } from '../request-context.js'
import { toCanonicalPath } from '../request-path.js'
import { isSupportedExpectation } from './expect-continue.js'

// Rules, router, forwarder and backend must all see the same path. They parse it separately, so a path that two parsers
// could read differently is rejected, never normalised: a normalised path is a second string that code may forget to use.

/** Longer request targets are rejected with 414. */
export const MAX_URL_LENGTH = 8192

/** Declared and protected paths as a tree of segments. */
interface PathNode {
  /** The segment as it is declared. */
  readonly segment: string
  /** Child nodes by their folded form. */
  readonly literals: Map<string, PathNode>
  /** Child nodes of segments with a parameter and text, such as `{name}.json`. */
  readonly patterns: PatternNode[]
  /** The child node of a segment that is a parameter. */
  parameter: PathNode | null
  /** Whether a declared path ends here, without and with a slash at its end. */
  isDeclared: boolean
  isDeclaredWithSlash: boolean
  /** Whether this path and everything below it is protected. */
  isProtected: boolean
}

interface PatternNode extends PathNode {
  readonly exact: RegExp
  readonly folded: RegExp
}

const newNode = (segment: string): PathNode => ({
  segment,
  literals: new Map(),
  patterns: [],
  parameter: null,
  isDeclared: false,
  isDeclaredWithSlash: false,
  isProtected: false
})

const newPatternNode = (segment: string): PatternNode => ({
  ...newNode(segment),
  exact: segmentPattern(segment, (literal) => literal),
  folded: segmentPattern(segment, foldedForm)
})

const PARAMETER = /\{[^{}]*\}/

const segmentPattern = (segment: string, form: (literal: string) => string): RegExp =>
  new RegExp(`^${segment.split(PARAMETER).map(form).map(escapeRegExp).join('.+')}$`)

const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/**
 * The paths that rules and schemas apply to. A variant of one must not bypass them on its way to a backend that ignores
 * letter case, a trailing slash, or the difference between a character and its encoded or compatibility form.
 */
export class KnownPaths {
  readonly #root = newNode('')
  #depth = 0
  /** Whether no known path has an upper-case or encoded character or ends in a slash. */
  #isFolded = true

  /** Path templates such as `/api/zones/{id}`, and prefixes of protected paths. */
  constructor(templates: Iterable<string>, protectedPaths: Iterable<string>) {
    for (const template of templates) {
      if (template.endsWith('/')) {
        this.#add(template.slice(0, -1)).isDeclaredWithSlash = true
        this.#isFolded = false
      } else this.#add(template).isDeclared = true
    }
    for (const path of protectedPaths) this.#add(path).isProtected = true
  }

  /** Whether a canonical path is another form of a declared or protected path, and not that path itself. */
  isMisspelt(path: string): boolean {
    const hasSlash = path.endsWith('/')
    if (this.#isFolded && !hasSlash && !HAS_OTHER_FORM.test(path)) return false
    // One segment more than the longest known path is enough to rule all of them out.
    const segments = path.slice(1, hasSlash ? -1 : undefined).split('/', this.#depth + 1)
    const isExact = !hasSlash || isDeclaredWithSlash(this.#root, segments, 0)
    return leadsToOtherPath(this.#root, segments, 0, isExact, hasSlash)
  }

  #add(template: string): PathNode {
    const segments = template.slice(1).split('/')
    this.#depth = Math.max(this.#depth, segments.length)
    return segments.reduce((node, segment) => this.#child(node, segment), this.#root)
  }

  #child(node: PathNode, segment: string): PathNode {
    if (PARAMETER.test(segment)) {
      if (segment.replace(PARAMETER, '') === '') {
        node.parameter ??= newNode(segment)
        return node.parameter
      }
      const found = node.patterns.find((pattern) => pattern.segment === segment)
      if (found !== undefined) return found
      const pattern = newPatternNode(segment)
      node.patterns.push(pattern)
      this.#isFolded = false
      return pattern
    }
    const folded = foldedForm(segment)
    if (folded !== segment) this.#isFolded = false
    const child = node.literals.get(folded) ?? newNode(segment)
    node.literals.set(folded, child)
    return child
  }
}

/** Whether these segments and a slash at their end are a declared path. */
const isDeclaredWithSlash = (node: PathNode, segments: readonly string[], index: number): boolean => {
  const segment = segments[index]
  if (segment === undefined) return node.isDeclaredWithSlash
  return childrenOf(node, segment).some(
    ({ child, isSame }) => isSame && isDeclaredWithSlash(child, segments, index + 1)
  )
}

/** Follows every branch: `/api/users/Roles` is a user for the router, and the list of roles for another server. */
const leadsToOtherPath = (
  node: PathNode,
  segments: readonly string[],
  index: number,
  isExact: boolean,
  hasSlash: boolean
): boolean => {
  if (node.isProtected && !isExact) return true
  const segment = segments[index]
  if (segment === undefined) {
    if (!isExact) return node.isDeclared || node.isDeclaredWithSlash
    return !hasSlash && node.isDeclaredWithSlash && !node.isDeclared
  }
  return childrenOf(node, segment).some(({ child, isSame }) =>
    leadsToOtherPath(child, segments, index + 1, isExact && isSame, hasSlash)
  )
}

interface Child {
  readonly child: PathNode
  /** Whether the segment has the declared form. */
  readonly isSame: boolean
}

/** The nodes that a segment leads to for one server or another. */
const childrenOf = (node: PathNode, segment: string): readonly Child[] => {
  const children: Child[] = []
  const literal = node.literals.size === 0 ? undefined : node.literals.get(foldedForm(segment))
  if (literal !== undefined) children.push({ child: literal, isSame: literal.segment === segment })
  for (const pattern of node.patterns) {
    if (pattern.folded.test(foldedForm(segment))) {
      children.push({ child: pattern, isSame: pattern.exact.test(segment) })
    }
  }
  if (node.parameter !== null) children.push({ child: node.parameter, isSame: true })
  return children
}

// In a canonical path, all other characters have one form only.
const HAS_OTHER_FORM = /[A-Z%]/

/** The segment as seen by a server that decodes, normalises and ignores letter case. */
const foldedForm = (segment: string): string => {
  if (!HAS_OTHER_FORM.test(segment)) return segment
  if (!segment.includes('%')) return segment.toLowerCase()
  // To upper case first, because servers that compare in upper case treat a dotless i as an i. The combining dot of a
  // capital I with a dot is removed: the Turkish lower case of that letter is i.
  return decodeURIComponent(segment).normalize('NFKC').toUpperCase().toLowerCase().replaceAll('\u0307', '')
}

export interface CanonicalPathOptions {
  readonly knownPaths: KnownPaths
}

/** Before any rule reads the path: the request must have one path, one host, and a version and method that we serve. */
export const canonicalPath = fp<CanonicalPathOptions>(
  async (app, { knownPaths }) => {
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

      const path = toCanonicalPath(url)
      if (path === null || knownPaths.isMisspelt(path)) return done(new GatewayError('AMBIGUOUS_PATH'))
      request.path = path
      if (!SERVED_METHODS.has(request.method)) return done(methodNotServed(path))
      if (isApiPath(path) && overridesMethod(url)) return done(methodFieldError())
      done()
    })
  },
  { name: 'canonical-path', fastify: '5.x', dependencies: ['security-headers'] }
)

/** The rest of the connection cannot be trusted to be requests. */
const CLOSE = { headers: { connection: 'close' } }

/** For requests too that the router rejects before any hook runs. */
export const tooManyHeaderLines = (request: IncomingMessage): GatewayError | null =>
  hasTooManyHeaderLines(request) ? new GatewayError('HEADERS_TOO_LARGE', CLOSE) : null

/** Rejected here and not by the router, because Fastify would read the body of some of these methods first. */
const methodNotServed = (path: string): GatewayError =>
  isApiPath(path)
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

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)([^#]*)$/i

/**
 * RFC 9112: a server must accept `GET http://host/path`. Such a target becomes its path and query if its authority equals
 * the Host header, as clients must send it. Any other target stays unchanged and is rejected as ambiguous.
 */
export const originForm = ({ url = '', headers }: Pick<IncomingMessage, 'url' | 'headers'>): string => {
  if (url.startsWith('/')) return url
  const [, authority = '', rest = ''] = ABSOLUTE_FORM.exec(url) ?? []
  if (authority === '' || authority.toLowerCase() !== headers.host?.toLowerCase()) return url
  return rest.startsWith('/') ? rest : `/${rest}`
}
