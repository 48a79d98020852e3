import { toCanonicalPath } from '../../shared/request-path.js'
import { HOME_PATH } from './config.js'

/** The path is stored in a cookie. */
const MAX_RETURN_PATH_LENGTH = 1024

/** A sign-in must not return to its own routes. */
const OIDC_PATH = /^\/auth\/oidc(?:\/|$)/i

const PLACEHOLDER_ORIGIN = 'http://host'

/** The path on this site that a sign-in returns to. Any value that could be read as another site becomes the home path. */
export const returnPath = (requested: unknown): string => {
  if (
    typeof requested !== 'string' ||
    requested.length > MAX_RETURN_PATH_LENGTH ||
    !URL.canParse(requested, PLACEHOLDER_ORIGIN)
  )
    return HOME_PATH
  const { origin, pathname, search, hash } = new URL(requested, PLACEHOLDER_ORIGIN)
  // If parsing changes the text, another parser could read it differently.
  if (origin !== PLACEHOLDER_ORIGIN || `${pathname}${search}${hash}` !== requested) return HOME_PATH
  return toCanonicalPath(pathname) === pathname && !OIDC_PATH.test(pathname) ? requested : HOME_PATH
}

/** The path of a sign-in that returns to another path. */
export const addressWithReturn = (path: string, returnTo: string): string =>
  returnTo === HOME_PATH ? path : `${path}?returnTo=${encodeURIComponent(returnTo)}`
