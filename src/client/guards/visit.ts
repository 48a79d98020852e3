import type { SessionState } from '../session/session-state.js'

/** The requirements of a page. */
export interface PageMeta {
  /** Requires a session. Requiring permissions implies it. */
  readonly auth?: boolean
  /** All of these are required. */
  readonly permissions?: readonly string[]
  /** One of these is required. An empty list requires nothing. */
  readonly permissionsAny?: readonly string[]
}

export interface Viewport {
  readonly width: number
  readonly height: number
}

export type Layout = 'default' | 'mobile'

/** The targets of redirects, and the width of the mobile layout. */
export interface GuardOptions {
  /** A page of the app, or a gateway path such as `/auth/oidc/login`. */
  readonly login: string
  readonly forbidden: string
  /** Widths below this, in CSS pixels, use the mobile layout. */
  readonly mobileBelow: number
}

export const LOGIN_PAGE = '/login'
export const OIDC_LOGIN_PATH = '/auth/oidc/login'

export const DEFAULT_GUARD_OPTIONS: GuardOptions = { login: LOGIN_PAGE, forbidden: '/forbidden', mobileBelow: 768 }

/** A navigation, as guards see it. */
export interface Visit {
  readonly page: { readonly path: string; readonly meta: PageMeta }
  readonly session: SessionState
  readonly viewport: Viewport
  readonly options: GuardOptions
}

export type Decision =
  | { readonly outcome: 'pass'; readonly layout?: Layout }
  | { readonly outcome: 'redirect'; readonly to: string }

export type Guard = (visit: Visit) => Decision
