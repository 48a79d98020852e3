import { foldedText } from './folded-text.js'

// Paths that are not other spellings of a path, but that some backends serve as the same: `/api/reports.json`, `/api/reports%20`.

/** The words of a path, by segment; null for a segment with a parameter. */
export type PathWords = readonly (string | null)[]

/** The words of a prefix or a template. */
export const templateWords = (template: string): PathWords =>
  segmentsOf(template).map((segment) => (segment.includes('{') ? null : wordOf(segment)))

/** The words of a requested path; null if it is no variant of any path. */
export const variantWords = (path: string): readonly string[] | null =>
  IS_PLAIN.test(path) ? null : segmentsOf(path).map(wordOf).filter(Boolean)

/** Whether a path with these words may be served as the path with the others, or as one below it. */
export const isVariantBelow = (prefix: PathWords, words: readonly string[] | null): boolean =>
  words !== null &&
  words.length >= prefix.length &&
  prefix.every((word, index) => word === null || isVariant(word, words[index] ?? ''))

const IS_PLAIN = /^[a-z0-9/_-]*$/

export const segmentsOf = (path: string): string[] => path.slice(1).split('/')

/** A segment without accents and without signs in front. */
const wordOf = (segment: string): string =>
  IS_PLAIN.test(segment)
    ? segment
    : foldedText(decodeURIComponent(segment))
        .normalize('NFD')
        .replace(/\p{M}+/gu, '')
        .replace(/^[^\p{L}\p{N}_]+/u, '')

/** Whether a segment is the word, or the word and a sign such as the dot of `.json`. */
const isVariant = (word: string, segment: string): boolean =>
  segment.startsWith(word) && !/^[\p{L}\p{N}_-]/u.test(segment.slice(word.length))
