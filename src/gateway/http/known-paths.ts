import { foldedText } from './folded-text.js'

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
  /** Whether a rule applies to this path and everything below it, with and without a slash at the end. */
  isPrefix: boolean
}

interface PatternNode extends PathNode {
  /** The text around its parameters, as the router compares it. */
  readonly texts: readonly string[]
  /** The folded form of each text. */
  readonly foldedTexts: readonly string[]
}

const newNode = (segment: string): PathNode => ({
  segment,
  literals: new Map(),
  patterns: [],
  parameter: null,
  isDeclared: false,
  isDeclaredWithSlash: false,
  isProtected: false,
  isPrefix: false
})

const PARAMETER = /\{[^{}]*\}/
const PARAMETERS = /\{[^{}]*\}/g
/** Stands for a parameter: a character for private use, with which no declared text begins. */
const EXAMPLE = '%EE%80%80'

const newPatternNode = (segment: string): PatternNode => {
  const texts = segment.split(PARAMETER).map((text) => decodeURIComponent(text))
  return { ...newNode(segment), texts, foldedTexts: texts.map(foldedText) }
}

/**
 * The paths that rules and schemas apply to. A variant of one must not bypass them on its way to a backend that ignores
 * letter case, a trailing slash, or the difference between a character and its encoded or compatibility form.
 */
export class KnownPaths {
  readonly #root = newNode('')
  readonly #paths: readonly string[]
  #depth = 0
  /** Whether no known path has an upper-case or encoded character or ends in a slash. */
  #isFolded = true

  /**
   * Path templates such as `/api/zones/{id}`, prefixes of protected paths, and prefixes of paths that may end in a slash.
   */
  constructor(templates: Iterable<string>, protectedPaths: Iterable<string>, prefixes: Iterable<string> = []) {
    this.#paths = [...new Set([...templates, ...protectedPaths, ...prefixes])]
    for (const template of templates) {
      if (template.endsWith('/')) {
        this.#add(template.slice(0, -1)).isDeclaredWithSlash = true
        this.#isFolded = false
      } else this.#add(template).isDeclared = true
    }
    for (const path of protectedPaths) if (path !== '/') this.#add(path).isProtected = true
    for (const path of prefixes) if (path !== '/') this.#add(path).isPrefix = true
  }

  /** One line for each known path that is another spelling of a known one, so that every request for it would be rejected. */
  conflicts(): string[] {
    return this.#paths.flatMap((path) => {
      const example = path.replaceAll(PARAMETERS, EXAMPLE)
      if (!this.isMisspelt(example)) return []
      const other = this.#paths.find((each) => new KnownPaths([], [], prefixesOf(each)).isMisspelt(example))
      return other === undefined ? [] : [`${path} must not exist beside ${other}: other spellings are rejected`]
    })
  }

  /** Whether a canonical path is another form of a declared or protected path, and not that path itself. */
  isMisspelt(path: string): boolean {
    const hasSlash = path.endsWith('/')
    if (this.#isFolded && !hasSlash && !HAS_OTHER_SPELLING.test(path)) return false
    // One segment more than the longest known path is enough to rule all of them out.
    const segments = path
      .slice(1, hasSlash ? -1 : undefined)
      .split('/', this.#depth + 1)
      .map((text) => ({ text, folded: foldedForm(text) }))
    const isSlashKnown = !hasSlash || isDeclaredWithSlash(this.#root, segments, 0)
    return leadsToOtherPath(this.#root, segments, 0, true, { hasSlash, isSlashKnown })
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

/** A segment of a requested path. */
interface Segment {
  readonly text: string
  readonly folded: string
}

/** The path and its parents. */
const prefixesOf = (path: string): string[] => {
  const segments = path.split('/')
  return segments.map((_segment, index) => segments.slice(0, index + 1).join('/')).slice(1)
}

/** Whether these segments and a slash at their end are a declared path. */
const isDeclaredWithSlash = (node: PathNode, segments: readonly Segment[], index: number): boolean => {
  const segment = segments[index]
  if (segment === undefined) return node.isDeclaredWithSlash
  return childrenOf(node, segment).some(
    ({ child, isSame }) => isSame && isDeclaredWithSlash(child, segments, index + 1)
  )
}

/** The end of a path. */
interface PathEnd {
  readonly hasSlash: boolean
  /** Whether there is no slash, or a declared path has it. */
  readonly isSlashKnown: boolean
}

/**
 * Follows every branch: `/api/users/Roles` is a user for the router, and the list of roles for another server. `isSame`: the
 * segments so far have the declared form.
 */
const leadsToOtherPath = (
  node: PathNode,
  segments: readonly Segment[],
  index: number,
  isSame: boolean,
  end: PathEnd
): boolean => {
  const isExact = isSame && end.isSlashKnown
  if ((node.isProtected && !isExact) || (node.isPrefix && !isSame)) return true
  const segment = segments[index]
  if (segment === undefined) {
    if (!isExact) return node.isDeclared || node.isDeclaredWithSlash
    return !end.hasSlash && node.isDeclaredWithSlash && !node.isDeclared
  }
  return childrenOf(node, segment).some((next) =>
    leadsToOtherPath(next.child, segments, index + 1, isSame && next.isSame, end)
  )
}

interface Child {
  readonly child: PathNode
  /** Whether the segment has the declared form. */
  readonly isSame: boolean
}

/** The nodes that a segment leads to for one server or another. */
const childrenOf = (node: PathNode, { text, folded }: Segment): readonly Child[] => {
  const children: Child[] = []
  const literal = node.literals.get(folded)
  if (literal !== undefined) children.push({ child: literal, isSame: literal.segment === text })
  for (const pattern of node.patterns) {
    if (containsInOrder(pattern.foldedTexts, folded))
      children.push({ child: pattern, isSame: isMatchOfRouter(pattern.texts, decodeURI(text)) })
  }
  if (node.parameter !== null) children.push({ child: node.parameter, isSame: true })
  return children
}

// Clients choose the text, so both functions take a time in proportion to its length. A regular expression with several
// parameters would take its square or more.

/** Whether some server may read the text as a segment with these texts around its parameters. */
const containsInOrder = ([first = '', ...others]: readonly string[], text: string): boolean => {
  const last = others.pop() ?? ''
  if (!text.startsWith(first) || !text.endsWith(last)) return false
  let end = first.length
  for (const other of others) {
    const start = text.indexOf(other, end)
    if (start === -1) return false
    end = start + other.length
  }
  return end + last.length <= text.length
}

/** Whether the router does: a parameter has a character, and ends at the first character of the text behind it. */
const isMatchOfRouter = ([first = '', ...others]: readonly string[], text: string): boolean => {
  const last = others.pop() ?? ''
  if (!text.startsWith(first) || !text.endsWith(last)) return false
  let end = first.length
  for (const other of others) {
    const start = text.indexOf(other.slice(0, 1), end)
    if (start <= end || !text.startsWith(other, start)) return false
    end = start + other.length
  }
  return end + last.length < text.length
}

/** The conflicts of all known paths of a gateway. Many of them are known in every row. */
export const spellingErrors = (all: readonly KnownPaths[]): string[] => [
  ...new Set(all.flatMap((known) => known.conflicts()))
]

// In a canonical path, all other characters have one form only.
const HAS_OTHER_SPELLING = /[A-Z%]/

/** The segment as seen by a server that decodes, normalises and ignores letter case. */
const foldedForm = (segment: string): string => {
  if (!HAS_OTHER_SPELLING.test(segment)) return segment
  return segment.includes('%') ? foldedText(decodeURIComponent(segment)) : segment.toLowerCase()
}
