import { STRICT_AREAS } from './access.js'

// Rules, router, forwarder and backend must all see the same path. They parse it separately, so a path that two parsers
// could read differently is refused, never repaired: a repaired path is a second string that somebody forgets to use.

/** Longer request targets are refused as such. */
export const MAX_URL_LENGTH = 8192

// One reading only: no empty segment, no `;`, no backslash, nothing that a URL parser would encode or drop.
const UNENCODED_PATH = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,=:@]+)*\/?$/
const ENCODED_PATH = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@]|%[0-9A-Fa-f]{2})+)*\/?$/
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/

// Percent-encoded, these are either needless (letters, digits, `-._~`: an equal spelling exists) or mean something to
// whoever decodes before splitting.
const NEVER_ENCODED = /%(?:[01][0-9a-f]|7f|2[35def]|3[0-9bf]|[46][1-9a-f]|[57][0-9a]|5c|5f|7e)/i

// What a decoder that also folds Unicode could make of a look-alike: a slash, a dot, a percent sign, a control character.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const SEPARATOR_LIKE = /[/\\.;%?#\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** The path of a request target if it has exactly one reading, else null. The query is not looked at. */
export const canonicalPath = (target: string): string | null => {
  const query = target.indexOf('?')
  const path = query === -1 ? target : target.slice(0, query)
  if (path === '' || DOT_SEGMENT.test(path)) return null
  if (UNENCODED_PATH.test(path)) return path
  return ENCODED_PATH.test(path) && !NEVER_ENCODED.test(path) && hasOneDecoding(path) ? path : null
}

const hasOneDecoding = (path: string): boolean => {
  const encodedParts = path.match(/(?:%[0-9A-Fa-f]{2})+/g) ?? []
  try {
    if (encodedParts.some((part) => SEPARATOR_LIKE.test(decodeURIComponent(part).normalize('NFKC')))) return false
  } catch {
    // Not UTF-8: every decoder makes something else of it.
    return false
  }
  return new URL(path, 'http://host').pathname === path
}

// A path of only these characters, without a slash at its end, cannot be another spelling of anything.
const PLAINLY_SPELT = /^(?:\/[a-z0-9_-]+)*$/

/**
 * Knows the paths that rules and schemas are tied to, so that a different spelling of one (letter case, a slash at the
 * end, a look-alike letter) cannot slip past them to a backend that is less particular.
 */
export class KnownPaths {
  readonly #templates: readonly (readonly string[])[]
  readonly #longestWord: number

  /** Templates as the router takes them: `/api/zones/:id`. */
  constructor(templates: Iterable<string>) {
    this.#templates = [...new Set(templates)].map((template) => template.slice(1).split('/'))
    this.#longestWord = Math.max(...[...STRICT_AREAS, ...this.#templates.flat()].map((word) => word.length))
  }

  isMisspelt(path: string): boolean {
    if (PLAINLY_SPELT.test(path)) return false
    const spelt = path.slice(1).split('/')
    const meant = spelt.filter((segment) => !vanishes(segment)).map((segment) => namesFor(segment, this.#longestWord))
    if (couldBeStrict(meant) && !(isStrict(spelt) && spelt.at(-1) !== '')) return true
    // One by one: `/api/users/Roles` is a user to us, and to another the list of roles.
    return this.#templates.some((template) => couldMatch(template, meant) && !matches(template, spelt))
  }
}

const isStrict = ([root, area]: readonly string[]): boolean => root === 'api' && STRICT_AREAS.includes(area ?? '')

const couldBeStrict = ([root, area]: readonly (readonly string[])[]): boolean =>
  root?.includes('api') === true && STRICT_AREAS.some((strict) => area?.includes(strict))

const matches = (template: readonly string[], segments: readonly string[]): boolean =>
  template.length === segments.length &&
  template.every((part, index) => (part.startsWith(':') ? segments[index] !== '' : part === segments[index]))

const couldMatch = (template: readonly string[], segments: readonly (readonly string[])[]): boolean =>
  template.length === segments.length &&
  template.every((part, index) => part.startsWith(':') || segments[index]?.includes(part))

/** Nothing at all, or only what some backend drops: what stands around it then moves together. */
const vanishes = (segment: string): boolean => /^[\s\p{C}\p{M}.+]*$/u.test(decodeURIComponent(segment))

/**
 * What forgiving backends could take a segment for: any case, accents and width, stray characters ignored, and cut off
 * at any of them (an extension, a parameter, a port), in all combinations: `+ad~min.json` is `admin` to somebody.
 */
const namesFor = (segment: string, longest: number): string[] => {
  const decoded = decodeURIComponent(segment)
  return [decoded, decoded.normalize('NFKD')].flatMap((text) => {
    // Both ways, because who compares in capitals takes a dotless i for an i.
    const pieces = text
      .toUpperCase()
      .toLowerCase()
      .split(/[^a-z0-9_-]+/)
    const names: string[] = []
    let name = ''
    for (const piece of pieces) {
      name += piece
      if (name.length > longest) break
      names.push(name)
    }
    return names
  })
}
