import { createElement, Fragment, type ReactElement, type ReactNode, useEffect, useState } from 'react'
import { navigateTo, windowSize } from '../browser.js'
import type { Client } from '../client.js'
import { guardVisit, requiresPermissions } from '../guards/guards.js'
import { isGatewayPath } from '../guards/return-path.js'
import { DEFAULT_GUARD_OPTIONS, type Decision, type GuardOptions, type PageMeta } from '../guards/visit.js'
import type { SessionState } from '../session/session-state.js'
import { useClient } from './context.js'
import { useSession } from './hooks.js'

const decide = (
  path: string,
  { permissions = [], permissionsAny = [] }: PageMeta,
  session: SessionState,
  options: Partial<GuardOptions>
): Decision =>
  guardVisit({
    page: { path, meta: { auth: true, permissions, permissionsAny } },
    session,
    viewport: windowSize(),
    options: { ...DEFAULT_GUARD_OPTIONS, ...options }
  }).decision

/** The arguments of a loader of React Router, as far as they are used. */
interface LoaderArguments {
  readonly request: { readonly url: string }
}

/**
 * A loader of React Router for a page that requires a session, and permissions if given. It returns the session, or throws
 * the redirect to the login or to the page for missing permissions.
 */
export const requireSession =
  ({ session }: Pick<Client<unknown>, 'session'>, meta: PageMeta = {}, options: Partial<GuardOptions> = {}) =>
  async ({ request }: LoaderArguments): Promise<SessionState> => {
    const { pathname, search } = new URL(request.url)
    const state = requiresPermissions(meta) ? await session.complete() : session.refresh()
    const decision = decide(pathname + search, meta, state, options)
    if (decision.outcome === 'pass') return state
    throw redirectTo(decision.to)
  }

/** React Router takes a thrown response with a location for a redirect. The header makes it leave the web application. */
const redirectTo = (to: string): Response =>
  new Response(null, {
    status: 302,
    headers: { location: to, ...(isGatewayPath(to) && { 'x-remix-reload-document': 'true' }) }
  })

export interface RequireSessionProps extends PageMeta {
  /** The path of the page with its query, to return to after the sign-in. */
  readonly path: string
  /** Navigates to a page of the web application: `(to) => <Navigate to={to} replace />`. */
  readonly redirect: (to: string) => ReactNode
  readonly options?: Partial<GuardOptions>
  /** Shown while the permissions are requested. */
  readonly fallback?: ReactNode
  readonly children?: ReactNode
}

/** Shows its children to signed-in users with the permissions only, for web applications without loaders. */
export const RequireSession = ({
  path,
  redirect,
  options = {},
  fallback = null,
  children,
  ...meta
}: RequireSessionProps): ReactElement => {
  const client = useClient()
  const session = useSession()
  const [failure, setFailure] = useState<unknown>(null)
  const isComplete = session.permissions !== null || !requiresPermissions(meta)
  useEffect(() => {
    if (!isComplete) client.session.complete().catch(setFailure)
  }, [client, isComplete])
  const decision = isComplete ? decide(path, meta, session, options) : null
  const address = decision?.outcome === 'redirect' && isGatewayPath(decision.to) ? decision.to : null
  useEffect(() => {
    if (address !== null) navigateTo(address)
  }, [address])
  // For the error boundary: without the permissions nothing can be decided.
  if (failure !== null) throw failure
  if (decision === null || address !== null) return createElement(Fragment, null, fallback)
  return createElement(Fragment, null, decision.outcome === 'pass' ? children : redirect(decision.to))
}
