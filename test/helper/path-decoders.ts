/**
 * What servers make of a path before they look at it. Each step is one that some real server takes; a hostile spelling
 * is one that some sequence of them turns into a strict path.
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
  // Cutting at whatever may begin a parameter, a query or a fragment; at an extension; at a NUL.
  (path) => path.replace(/;[^/]*/g, ''),
  (path) => path.replace(/[?#\0].*$/s, ''),
  (path) => path.replace(/\.[a-z0-9]+$/i, ''),
  // Slashes and dots.
  (path) => path.replaceAll('\\', '/'),
  (path) => path.replace(/\/{2,}/g, '/'),
  (path) => new URL(path.startsWith('/') ? path : `/${path}`, 'http://host').pathname,
  (path) => path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, ''),
  // Case, width, accents, invisible characters; spaces and dots at the ends of names.
  (path) => path.toLowerCase(),
  (path) => path.toUpperCase().toLowerCase(),
  (path) => path.normalize('NFKC'),
  (path) => path.normalize('NFKD').replace(/\p{M}/gu, ''),
  (path) => path.replace(/[\p{Cc}\p{Cf}]/gu, ''),
  (path) => path.replace(/[. +]+(?=\/|$)/g, '').replace(/(?<=\/)[ +]+/g, '')
]

const STRICT = /^\/api\/(?:admin|audit)(?:\/|$)/

/** Whether any order of decoding steps ends at a strict path. */
export const couldBeStrict = (path: string): boolean => {
  const seen = new Set([path])
  const queue = [path]
  for (let current = queue.pop(); current !== undefined; current = queue.pop()) {
    if (STRICT.test(current)) return true
    for (const step of STEPS) {
      const next = safely(step, current)
      // Two thousand forms of one path are more than any server goes through.
      if (!seen.has(next) && seen.size < 2_000) {
        seen.add(next)
        queue.push(next)
      }
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
