import { isUnder } from '../access.js'
import { isVariantBelow, type PathWords, segmentsOf, templateWords, variantWords } from '../http/path-variants.js'

/** A path of a limit: a prefix, or the template of a route. */
export interface LimitedPath {
  readonly path: string
  readonly words: PathWords
}

export const limitedPath = (path: string): LimitedPath => ({ path, words: templateWords(path) })

/** The path of a request and the template of its route. */
export interface RequestedPath {
  readonly path: string
  readonly template: string
  readonly words: ReturnType<typeof variantWords>
}

export const requestedPath = (path: string, template: string): RequestedPath => ({
  path,
  template,
  words: variantWords(path)
})

/**
 * Whether a limit with this path applies to a request. To count a request for another path does less harm than not to count
 * one that a backend serves as this path.
 */
export const isLimited = ({ path, words }: LimitedPath, requested: RequestedPath): boolean => {
  if (!path.includes('{'))
    return path === '/' || isUnder(path, requested.path) || isVariantBelow(words, requested.words)
  if (path === requested.template) return true
  // A path of another route is not a variant of this one. Reading methods that the route does not declare have no route.
  if (!requested.template.endsWith('*')) return false
  const segments = requested.words ?? segmentsOf(requested.path)
  return segments.length === words.length && isVariantBelow(words, segments)
}
