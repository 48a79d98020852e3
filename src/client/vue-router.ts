import type { Router } from 'vue-router'
import { navigateTo, windowSize } from './browser.js'
import { guardVisit, requiresPermissions } from './guards/guards.js'
import { isGatewayPath } from './guards/return-path.js'
import { DEFAULT_GUARD_OPTIONS, type GuardOptions, type Layout, type PageMeta, type Viewport } from './guards/visit.js'
import type { Session } from './session/session.js'

declare module 'vue-router' {
  // Type-checks the `meta` of routes.
  interface RouteMeta extends PageMeta {}
}

export interface RouterGuardOptions {
  readonly session: Session
  readonly guardOptions?: Partial<GuardOptions>
  readonly viewport?: () => Viewport
  /** Called on every navigation before the page is shown. */
  readonly onLayout?: (layout: Layout) => void
  /** Navigates to an address outside the router, such as the login at the identity provider. */
  readonly leave?: (url: string) => void
}

/** Runs the guards before every navigation. Returns a function that removes them. */
export const installGuards = (
  router: Pick<Router, 'beforeEach'>,
  {
    session,
    guardOptions: given,
    viewport = windowSize,
    onLayout = () => undefined,
    leave = navigateTo
  }: RouterGuardOptions
): (() => void) => {
  const options = { ...DEFAULT_GUARD_OPTIONS, ...given }
  return router.beforeEach(async ({ fullPath, meta }) => {
    // Only pages that require permissions wait for them.
    const state = requiresPermissions(meta) ? await session.complete() : session.refresh()
    const visit = { page: { path: fullPath, meta }, session: state, viewport: viewport(), options }
    const { layout, decision } = guardVisit(visit)
    onLayout(layout)
    if (decision.outcome === 'pass') return true
    // The router cannot decide this: one with a catch-all route matches every address.
    if (!isGatewayPath(decision.to)) return decision.to
    leave(decision.to)
    return false
  })
}
