/**
 * Text as the most lenient server compares it: without differences of letter case, compatibility forms and invisible
 * characters. Every comparison of names and paths that a backend may read more leniently uses it.
 */
export const foldedText = (text: string): string => (HAS_OTHER_FORM.test(text) ? caseFolded(text) : text)

/** A canonical path as seen by a server that decodes it and ignores such differences. */
export const foldedPath = (path: string): string => foldedText(decodeURIComponent(path))

// Everything but printable ASCII without capitals.
const HAS_OTHER_FORM = /[^ -@[-~]/

// To upper case in between, because servers that compare in upper case treat a dotless i as an i, and because the upper case
// of some letters has several. The combining dot of a capital I with a dot is removed: the Turkish lower case of that letter is i.
const caseFolded = (text: string): string =>
  text
    .normalize('NFKC')
    .replace(INVISIBLE, '')
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
    .replaceAll('\u0307', '')

const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu
