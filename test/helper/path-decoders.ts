/**
 * Normalisation steps of common servers. A path is hostile if some sequence of them turns it into a strict path. Removing
 * extensions, accents, invisible characters or surplus dots and spaces is not included: such a path is a different one.
 */
const STEPS: readonly ((path: string) => string)[] = [
  // Percent-decoding, also of malformed escapes and repeatedly.
  (path) => path.replace(/%([0-9a-f]{2})/gi, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
  (path) => {
    try {
      return decodeURIComponent(path)
    } catch {
      return path
    }
  },
  (path) => path.replace(/%u([0-9a-f]{4})/gi, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
  // Truncation at the start of a parameter, query or fragment, and at NUL.
  (path) => path.replace(/;[^/]*/g, ''),
  (path) => path.replace(/[?#\0].*$/s, ''),
  // Slashes and dots.
  (path) => path.replaceAll('\\', '/'),
  (path) => path.replace(/\/{2,}/g, '/'),
  // The parser would remove a trailing space.
  (path) => new URL(path.replace(/^(?!\/)/, '/').replaceAll(' ', '%20'), 'http://host').pathname,
  (path) => path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, ''),
  // Letter case and Unicode-compatibility forms.
  (path) => path.toLowerCase(),
  (path) => path.toUpperCase().toLowerCase(),
  (path) => path.normalize('NFKC')
]

const STRICT = /^\/api\/(?:admin|audit)(?:\/|$)/

/** Whether any sequence of steps results in a strict path. */
export const couldBeStrict = (path: string): boolean => {
  const seen = new Set([path])
  // Sets iterate in insertion order, including entries added meanwhile: short sequences of steps come first.
  for (const current of seen) {
    if (STRICT.test(current)) return true
    for (const step of STEPS) {
      const next = safely(step, current)
      // A bound on the number of forms. Encoding a character again adds at most six characters.
      if (seen.size < 500 && next.length <= 6 * path.length) seen.add(next)
    }
  }
  return false
}

const safely = (step: (path: string) => string, path: string): string => {
  try {
    return step(path)
  } catch {
    return path
  }
}
