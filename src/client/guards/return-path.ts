const MAX_CHARACTERS = 2048

// Paths of the gateway: a sign-in must not end at a logout or an API response.
const GATEWAY_PATH = /^\/(?:api|auth)(?:[/?#]|$)/i

// Browsers read a backslash as a slash and remove tabs and line breaks. Lone surrogates are not valid text.
const UNSAFE = /[\\\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

/** The path to return to after sign-in, or `/`. Login links may come from attackers, so only paths of this site pass. */
export const safeReturnPath = (requested: unknown): string => {
  if (typeof requested !== 'string' || requested.length > MAX_CHARACTERS) return '/'
  const [path = ''] = requested.split(/[?#]/)
  // Two slashes start a host name, also further on if dot segments before them are resolved.
  const isPath = path.startsWith('/') && !path.includes('//') && !UNSAFE.test(requested)
  return isPath && !isGatewayPath(requested) ? requested : '/'
}

/** Whether the path belongs to the gateway and not to a page. */
export const isGatewayPath = (path: string): boolean => GATEWAY_PATH.test(path)
