// The syntax of canonical paths. `src/gateway/plugins/canonical-path.ts` rejects all other paths and explains why.

// No empty segment, no `;`, no backslash, and no character that a URL parser would encode or drop.
const UNENCODED_PATH = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,=:@]+)*\/?$/
const ENCODED_PATH = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@]|%[0-9A-Fa-f]{2})+)*\/?$/
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/

// Encoded characters that have an equivalent unencoded form (letters, digits, `-._~`), or that act as separators for a
// parser that decodes before it splits.
const NEVER_ENCODED = /%(?:[01][0-9a-f]|7f|2[35def]|3[0-9bf]|[46][1-9a-f]|[57][0-9a]|5c|5f|7e)/i

// Separators and control characters that a decoder with Unicode normalisation could produce from a look-alike.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const SEPARATOR_LIKE = /[/\\.;%?#\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** The path of a request target, or null if parsers could read it differently. The query is not checked. */
export const toCanonicalPath = (target: string): string | null => {
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
    // Decoders disagree about text that is not UTF-8.
    return false
  }
  return new URL(path, 'http://host').pathname === path
}
