import { type ApiOptions, createApi } from './api/api.js'
import type { Api } from './api/operations.js'
import { leaveTo } from './browser.js'
import { type Clock, systemClock } from './clock.js'
import { Realtime, type RealtimeOptions } from './realtime/realtime.js'
import { type ExpiryOptions, watchExpiry } from './session/expiry-watch.js'
import { providerLogoutIn } from './session/provider-logout.js'
import { Session } from './session/session.js'

export interface ClientOptions
  extends Pick<ApiOptions, 'baseUrl' | 'fetch' | 'newXhr' | 'cookies'>,
    Pick<ExpiryOptions, 'warnBeforeMs' | 'onExpiring' | 'onExpired'> {
  readonly clock?: Clock
  /** Goes to an address of the gateway that is no page of this site's own: the provider's logout. */
  readonly leave?: (url: string) => void
  readonly realtime?: Omit<RealtimeOptions, 'negotiate' | 'clock'>
}

export interface Client {
  readonly api: Api
  readonly session: Session
  /** Not connected until it is started. */
  readonly realtime: Realtime
  /**
   * Signs out here, and leaves for the identity provider where the session came from there, to sign out there too; the
   * provider sends the browser back. True where the page is being left.
   */
  signOut(): Promise<boolean>
  /** Ends what would go on by itself: the connection, the watch over the session. */
  close(): void
}

const LOGINS: ReadonlySet<string> = new Set(['/api/auth/login', '/api/auth/backend-login'])

/** The gateway's words for a session that is over. A backend that refuses a password says the same with others. */
const OVER: ReadonlySet<string> = new Set(['TOKEN_EXPIRED', 'UNAUTHENTICATED'])

/** All of the library, put together: a page needs one of these. */
export const createClient = ({
  clock = systemClock,
  realtime: realtimeOptions = {},
  warnBeforeMs,
  onExpiring,
  onExpired,
  leave = leaveTo,
  // Called by its name, because a browser's fetch refuses to be anybody's method.
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
      if (error === null && LOGINS.has(path)) session.begin()
      else session.refresh()
      if (error?.status === 401 && OVER.has(error.code)) expiry.endNow()
    }
  })
  const session = new Session({
    ...(apiOptions.cookies && { cookies: apiOptions.cookies }),
    nowMs: () => clock.now(),
    askBackend: () => api.auth.backendMe()
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
        // The gateway has ended the session, whatever the backend says to it.
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
