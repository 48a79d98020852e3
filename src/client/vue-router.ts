import type { Router } from 'vue-router'
import { leaveTo, windowSize } from './browser.js'
import { guardVisit } from './guards/guards.js'
import { isGatewayPath } from './guards/return-path.js'
import { DEFAULT_PLACES, type Layout, type PageMeta, type Places, type Viewport } from './guards/visit.js'
import type { Session } from './session/session.js'

declare module 'vue-router' {
  // Pages say what they ask for in their meta, and the compiler knows the words.
  interface RouteMeta extends PageMeta {}
}

export interface RouterGuardOptions {
  readonly session: Session
  readonly places?: Partial<Places>
  readonly viewport?: () => Viewport
  /** Told on every navigation, before the page is shown. */
  readonly onLayout?: (layout: Layout) => void
  /** Goes to an address that is not a page of the router, such as the login at the identity provider. */
  readonly leave?: (url: string) => void
}

/** Puts the guards before every navigation of a router. The answer takes them off again. */
export const installGuards = (
  router: Pick<Router, 'beforeEach'>,
  { session, places: given, viewport = windowSize, onLayout = () => undefined, leave = leaveTo }: RouterGuardOptions
): (() => void) => {
  const places = { ...DEFAULT_PLACES, ...given }
  return router.beforeEach(async ({ fullPath, meta }) => {
    // Only a page that asks for permissions has to wait for them.
    const state = asksForPermissions(meta) ? await session.complete() : session.refresh()
    const visit = { page: { path: fullPath, meta }, session: state, viewport: viewport(), places }
    const { layout, decision } = guardVisit(visit)
    onLayout(layout)
    if (decision.outcome === 'pass') return true
    // Not asked of the router: one that has a page for unknown addresses knows them all.
    if (!isGatewayPath(decision.to)) return decision.to
    leave(decision.to)
    return false
  })
}

const asksForPermissions = ({ permissions = [], permissionsAny = [] }: PageMeta): boolean =>
  permissions.length > 0 || permissionsAny.length > 0
