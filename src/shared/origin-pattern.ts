const SHAPE = /^[a-z][a-z0-9+.-]*:\/\/(?:\*\.)?(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/**
 * An origin as browsers write it, one whose first label is `*`, or a lone `*`. What no browser sends (a path, the scheme's
 * own port) is refused, because it would look right and match nothing.
 */
export const isOriginPattern = (text: string): boolean => {
  if (text === '*') return true
  if (!SHAPE.test(text)) return false
  const example = text.replace('*.', 'a.').toLowerCase()
  if (!URL.canParse(example)) return false
  const { origin } = new URL(example)
  // Schemes that URL does not know have no origin there; an app's own one still has in its browser.
  return origin === 'null' ? !/^https?:/.test(example) : origin === example
}
