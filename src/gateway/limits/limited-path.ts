import { isUnder } from '../access.js'
import { foldedText } from '../http/folded-text.js'

/** A path of a limit: a prefix, or the template of a route. */
export interface LimitedPath {
  readonly path: string
  /** The word of each segment; null for a segment with a parameter. */
  readonly words: readonly (string | null)[]
}

export const limitedPath = (path: string): LimitedPath => ({
  path,
  words: segmentsOf(path).map((segment) => (segment.includes('{') ? null : wordOf(segment)))
})

/** The path of a request and the template of its route. */
export interface RequestedPath {
  readonly path: string
  readonly template: string
  /** The words of its segments; null if the path has no variants. */
  readonly words: readonly string[] | null
}

export const requestedPath = (path: string, template: string): RequestedPath => ({
  path,
  template,
  words: IS_PLAIN.test(path) ? null : segmentsOf(path).map(wordOf).filter(Boolean)
})

/**
 * Whether a limit with this path applies to a request. Backends may serve `/api/reports.json` and `/api/reports%20` as
 * `/api/reports`, and to count a request for another path does less harm than not to count one for this.
 */
export const isLimited = ({ path, words }: LimitedPath, requested: RequestedPath): boolean => {
  const isTemplate = path.includes('{')
  if (isTemplate ? path === requested.template : path === '/' || isUnder(path, requested.path)) return true
  const segments = requested.words
  if (segments === null || segments.length < words.length) return false
  // A path of another route is not a variant of this one.
  if (isTemplate && (segments.length > words.length || !requested.template.endsWith('*'))) return false
  return words.every((word, index) => word === null || isVariant(word, segments[index] ?? ''))
}

const IS_PLAIN = /^[a-z0-9/_-]*$/

const segmentsOf = (path: string): string[] => path.slice(1).split('/')

/** A segment without accents and without signs in front. */
const wordOf = (segment: string): string =>
  foldedText(decodeURIComponent(segment))
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .replace(/^[^\p{L}\p{N}_]+/u, '')

/** Whether a segment is the word, or the word and a sign such as the dot of `.json`. */
const isVariant = (word: string, segment: string): boolean =>
  segment.startsWith(word) && !/^[\p{L}\p{N}_-]/u.test(segment.slice(word.length))
