/**
 * What servers make of a path before they look at it: each step is one that common servers take, and a hostile spelling is
 * one that some sequence of them turns into a strict path. Not among them: dropping extensions, accents, invisible
 * characters or stray dots and spaces. A path that differs from a strict one in these is another path.
 */
const STEPS: readonly ((path: string) => string)[] = [
  // Percent-decoding, also where it is wrong, and once more where somebody decoded before.
  (path) => path.replace(/%([0-9a-f]{2})/gi, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
  (path) => {
    try {
      return decodeURIComponent(path)
    } catch {
      return path
    }
  },
  (path) => path.replace(/%u([0-9a-f]{4})/gi, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
  // Cutting at whatever may begin a parameter, a query or a fragment; at a NUL.
  (path) => path.replace(/;[^/]*/g, ''),
  (path) => path.replace(/[?#\0].*$/s, ''),
  // Slashes and dots.
  (path) => path.replaceAll('\\', '/'),
  (path) => path.replace(/\/{2,}/g, '/'),
  // The parser would drop a space at the end.
  (path) => new URL(path.replace(/^(?!\/)/, '/').replaceAll(' ', '%20'), 'http://host').pathname,
  (path) => path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, ''),
  // Letter case and Unicode-compatibility forms.
  (path) => path.toLowerCase(),
  (path) => path.toUpperCase().toLowerCase(),
  (path) => path.normalize('NFKC')
]

const STRICT = /^\/api\/(?:admin|audit)(?:\/|$)/

/** Whether any order of decoding steps ends at a strict path. */
export const couldBeStrict = (path: string): boolean => {
  const seen = new Set([path])
  // A set is walked in the order of insertion, and what is added meanwhile comes last: short sequences of steps first.
  for (const current of seen) {
    if (STRICT.test(current)) return true
    for (const step of STEPS) {
      const next = safely(step, current)
      // More forms than any server goes through. Encoding a character anew makes six of it at most.
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
