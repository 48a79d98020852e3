import { canonicalPath } from '../request-path.js'

/** Where somebody goes who did not say where. */
export const HOME = '/'

/** A sign-in remembers it in a cookie. */
const MAX_CHARACTERS = 1024

/** Signing in must not end where it began. */
const OWN_PATHS = /^\/auth\/oidc(?:\/|$)/i

const BASE = 'http://host'

/**
 * The place on this site that a sign-in was asked to end at. What could be read as anything else, another site above all,
 * is not repaired: it leads home.
 */
export const returnPath = (wanted: unknown): string => {
  if (typeof wanted !== 'string' || wanted.length > MAX_CHARACTERS || !URL.canParse(wanted, BASE)) return HOME
  const { origin, pathname, search, hash } = new URL(wanted, BASE)
  // Equal to the letter: a parser that had to change something shows that another could read it differently.
  if (origin !== BASE || `${pathname}${search}${hash}` !== wanted) return HOME
  return canonicalPath(pathname) === pathname && !OWN_PATHS.test(pathname) ? wanted : HOME
}
