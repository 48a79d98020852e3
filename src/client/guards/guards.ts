import { safeReturnPath } from './return-path.js'
import type { Decision, Guard, Layout, PageMeta, Visit } from './visit.js'

const PASS: Decision = { outcome: 'pass' }

/** Redirects users who are not signed in to the login page, with the path to return to. */
export const authGuard: Guard = ({ page, session, options }) =>
  page.meta.auth !== true || session.isSignedIn || isAt(page.path, options.login)
    ? PASS
    : toLogin(page.path, options.login)

/** `permissions` requires all of them, `permissionsAny` one. It decides what is shown; the backend enforces permissions. */
export const permissionsGuard: Guard = ({ page, session, options }) => {
  const { permissions: all = [], permissionsAny: any = [] } = page.meta
  if (all.length === 0 && any.length === 0) return PASS
  if (isAt(page.path, options.login) || isAt(page.path, options.forbidden)) return PASS
  if (!session.isSignedIn) return toLogin(page.path, options.login)

  const held = new Set(session.permissions)
  const isAllowed = all.every((name) => held.has(name)) && (any.length === 0 || any.some((name) => held.has(name)))
  return isAllowed ? PASS : { outcome: 'redirect', to: options.forbidden }
}

/** Whether the permissions of the session must be known before the guards can decide. */
export const requiresPermissions = ({ permissions = [], permissionsAny = [] }: PageMeta): boolean =>
  permissions.length > 0 || permissionsAny.length > 0

/** Always passes, and chooses the layout. */
export const deviceGuard: Guard = ({ viewport, options }) => ({
  outcome: 'pass',
  layout: layoutOf(viewport.width, options.mobileBelow)
})

const layoutOf = (width: number, mobileBelow: number): Layout =>
  width > 0 && width < mobileBelow ? 'mobile' : 'default'

/** Runs all guards for a navigation: the layout, and the first redirect. */
export const guardVisit = (visit: Visit): { readonly layout: Layout; readonly decision: Decision } => {
  const device = deviceGuard(visit)
  const layout = (device.outcome === 'pass' && device.layout) || 'default'
  const auth = authGuard(visit)
  return { layout, decision: auth.outcome === 'redirect' ? auth : permissionsGuard(visit) }
}

const toLogin = (from: string, login: string): Decision => {
  const returnTo = safeReturnPath(from)
  const query = returnTo === '/' ? '' : `?returnTo=${encodeURIComponent(returnTo)}`
  return { outcome: 'redirect', to: `${login}${query}` }
}

/** The target of a redirect must not redirect again. */
const isAt = (path: string, place: string): boolean => path.split(/[?#]/)[0] === place
