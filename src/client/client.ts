import { type ApiOptions, createApi } from './api/api.js'
import type { Api } from './api/operations.js'
import { navigateTo } from './browser.js'
import { type Clock, systemClock } from './clock.js'
import { Realtime, type RealtimeOptions } from './realtime/realtime.js'
import { type ExpiryOptions, watchExpiry } from './session/expiry-watch.js'
import { providerLogoutIn } from './session/provider-logout.js'
import { Session } from './session/session.js'

export interface ClientOptions
  extends Pick<ApiOptions, 'baseUrl' | 'fetch' | 'newXhr' | 'cookies'>,
    Pick<ExpiryOptions, 'warnBeforeMs' | 'onExpiring' | 'onExpired'> {
  readonly clock?: Clock
  /** Navigates to a gateway address that is not a page of the app: the provider's logout. */
  readonly leave?: (url: string) => void
  readonly realtime?: Omit<RealtimeOptions, 'negotiate' | 'clock'>
}

export interface Client {
  readonly api: Api
  readonly session: Session
  /** Connects when `start` is called. */
  readonly realtime: Realtime
  /**
   * Signs out. If the session came from the identity provider, the browser then navigates there to sign out too, and the
   * provider redirects it back. Resolves to true if the page is being left.
   */
  signOut(): Promise<boolean>
  /** Closes the connection and stops all timers. */
  close(): void
}

const LOGIN_PATHS: ReadonlySet<string> = new Set(['/api/auth/login', '/api/auth/backend-login'])

/** The gateway's codes for an expired session. A backend uses other codes to reject a password. */
const SESSION_ENDED_CODES: ReadonlySet<string> = new Set(['TOKEN_EXPIRED', 'UNAUTHENTICATED'])

/** Creates the API, session and realtime clients of a page. */
export const createClient = ({
  clock = systemClock,
  realtime: realtimeOptions = {},
  warnBeforeMs,
  onExpiring,
  onExpired,
  leave = navigateTo,
  // A browser's fetch throws if it is called as a method of another object.
  fetch = (input, init) => globalThis.fetch(input, init),
  ...apiOptions
}: ClientOptions = {}): Client => {
  let providerLogout: string | null = null
  const api: Api = createApi({
    ...apiOptions,
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      providerLogout = providerLogoutIn(response) ?? providerLogout
      return response
    },
    onSettled: (error, path) => {
      if (error === null && LOGIN_PATHS.has(path)) session.begin()
      else session.refresh()
      if (error?.status === 401 && SESSION_ENDED_CODES.has(error.code)) expiry.expireNow()
    }
  })
  const session = new Session({
    ...(apiOptions.cookies && { cookies: apiOptions.cookies }),
    nowMs: () => clock.now(),
    fetchUser: () => api.auth.backendMe()
  })
  const expiry = watchExpiry({
    session,
    clock,
    ...(warnBeforeMs !== undefined && { warnBeforeMs }),
    ...(onExpiring && { onExpiring }),
    ...(onExpired && { onExpired })
  })
  const realtime = new Realtime({ ...realtimeOptions, clock, negotiate: () => api.negotiate.read() })
  return {
    api,
    session,
    realtime,
    signOut: async () => {
      providerLogout = null
      await api.auth.logout().catch((error) => {
        // The gateway ends the session even if the backend fails.
        if (session.state.isSignedIn) throw error
      })
      if (providerLogout === null) return false
      leave(`${apiOptions.baseUrl ?? ''}${providerLogout}`)
      return true
    },
    close: () => {
      realtime.stop()
      expiry.stop()
    }
  }
}
