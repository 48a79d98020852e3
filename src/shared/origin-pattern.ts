const SHAPE = /^[a-z][a-z0-9+.-]*:\/\/(?:\*\.)?(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/**
 * An origin in the spelling of browsers, an origin whose first label is `*`, or `*` alone. A path or the default port of
 * the scheme is rejected, because browsers do not send them and the pattern would never match.
 */
export const isOriginPattern = (text: string): boolean => {
  if (text === '*') return true
  if (!SHAPE.test(text)) return false
  const example = text.replace('*.', 'a.').toLowerCase()
  if (!URL.canParse(example)) return false
  const { origin } = new URL(example)
  // For custom schemes of apps, URL returns the origin 'null', but browsers send scheme and host.
  return origin === 'null' ? !/^https?:/.test(example) : origin === example
}
