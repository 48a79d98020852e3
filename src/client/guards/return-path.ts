const MAX_CHARACTERS = 2048

// The gateway's own: nobody is to be signed out, or shown JSON, because they signed in.
const GATEWAY_PATH = /^\/(?:api|auth)(?:[/?#]|$)/i

// Browsers read a backslash as a slash, and drop tabs and line ends before they read anything. Half a character is no text.
const MISREAD = /[\\\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

/**
 * Where to go after signing in: a page of this site, or `/`. Anybody can send somebody a link to the login page, so what it
 * says about coming back is not to be trusted: no scheme, no host, nothing that some reader takes for one.
 */
export const safeReturnPath = (wanted: unknown): string => {
  if (typeof wanted !== 'string' || wanted.length > MAX_CHARACTERS) return '/'
  const [path = ''] = wanted.split(/[?#]/)
  // Two slashes begin a host, at the front at once, and further on once somebody has resolved the dots before them.
  const isPath = path.startsWith('/') && !path.includes('//') && !MISREAD.test(wanted)
  return isPath && !isGatewayPath(wanted) ? wanted : '/'
}

/** Whether the gateway answers there, and no page. */
export const isGatewayPath = (path: string): boolean => GATEWAY_PATH.test(path)
