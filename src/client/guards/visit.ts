import type { SessionState } from '../session/session-state.js'

/** What a page asks of its visitors. */
export interface PageMeta {
  /** Whether somebody must be signed in. Asking for permissions asks for this too. */
  readonly auth?: boolean
  /** ALL of these are needed. */
  readonly permissions?: readonly string[]
  /** ANY of these is needed. An empty list asks for nothing. */
  readonly permissionsAny?: readonly string[]
}

export interface Viewport {
  readonly width: number
  readonly height: number
}

export type Layout = 'default' | 'mobile'

/** Where visitors are sent. */
export interface Places {
  /** A page of this site, or a path of the gateway such as `/auth/oidc/login`. */
  readonly login: string
  readonly forbidden: string
  /** Below this width, in CSS pixels, the layout is the mobile one. */
  readonly mobileBelow: number
}

export const LOGIN_PAGE = '/login'
export const OIDC_LOGIN_PATH = '/auth/oidc/login'

export const DEFAULT_PLACES: Places = { login: LOGIN_PAGE, forbidden: '/forbidden', mobileBelow: 768 }

/** Somebody goes to a page: all that a guard looks at. */
export interface Visit {
  readonly page: { readonly path: string; readonly meta: PageMeta }
  readonly session: SessionState
  readonly viewport: Viewport
  readonly places: Places
}

export type Decision =
  | { readonly outcome: 'pass'; readonly layout?: Layout }
  | { readonly outcome: 'redirect'; readonly to: string }

export type Guard = (visit: Visit) => Decision
