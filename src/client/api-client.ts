import { type ApiCaller, type CallerOptions, createCaller } from './api/caller.js'
import { navigateTo } from './browser.js'
import { type Clock, systemClock } from './clock.js'
import { type ExpiryOptions, watchExpiry } from './session/expiry-watch.js'
import { providerLogoutIn } from './session/provider-logout.js'
import { Session } from './session/session.js'

export interface ApiClientOptions<Api = ApiCaller>
  extends Omit<CallerOptions, 'onSettled'>,
    Pick<ExpiryOptions, 'warnBeforeMs' | 'onExpiring' | 'onExpired'> {
  readonly clock?: Clock
  /** Navigates to a gateway address that is not a page of the app: the provider's logout. */
  readonly leave?: (url: string) => void
  /** The functions of `api`, such as those that `gatehouse client-api` generates. */
  readonly routes?: (call: ApiCaller) => Api
}

export interface ApiClient<Api = ApiCaller> {
  /** The functions of `routes`; without them the same as `call`. */
  readonly api: Api
  /** Calls a path for which `api` has no function. */
  readonly call: ApiCaller
  readonly session: Session
  /** Signs in with fields that gateway and backend accept, such as `{ email, password }`. Rejects with an `ApiError`. */
  signIn<Result = unknown>(credentials: object): Promise<Result>
  /**
   * Signs out. If the session came from the identity provider, the browser then navigates there to sign out too, and the
   * provider redirects it back. Resolves to true if the page is being left.
   */
  signOut(): Promise<boolean>
  /** Stops all timers. */
  close(): void
}

const LOGIN_PATH = '/api/auth/login'
const LOGIN_PATHS: ReadonlySet<string> = new Set([LOGIN_PATH, '/api/auth/backend-login'])

/** The gateway's codes for an expired session. A backend uses other codes to reject a password. */
const SESSION_ENDED_CODES: ReadonlySet<string> = new Set(['TOKEN_EXPIRED', 'UNAUTHENTICATED'])

/** Creates the calls and the session of a web application, without realtime. */
export const createApiClient = <Api = ApiCaller>({
  clock = systemClock,
  warnBeforeMs,
  onExpiring,
  onExpired,
  leave = navigateTo,
  routes,
  // A browser's fetch throws if it is called as a method of another object.
  fetch = (input, init) => globalThis.fetch(input, init),
  ...callerOptions
}: ApiClientOptions<Api> = {}): ApiClient<Api> => {
  let providerLogout: string | null = null
  const call = createCaller({
    ...callerOptions,
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
    ...(callerOptions.cookies && { cookies: callerOptions.cookies }),
    nowMs: () => clock.now(),
    fetchUser: () => call('GET', '/api/auth/backend-me')
  })
  const expiry = watchExpiry({
    session,
    clock,
    ...(warnBeforeMs !== undefined && { warnBeforeMs }),
    ...(onExpiring && { onExpiring }),
    ...(onExpired && { onExpired })
  })
  return {
    // Without `routes` the type of `api` is that of `call`, unless the caller declares another one.
    api: routes === undefined ? (call as Api) : routes(call),
    call,
    session,
    signIn: (credentials) => call('POST', LOGIN_PATH, { body: credentials }),
    signOut: async () => {
      providerLogout = null
      await call('POST', '/api/auth/logout').catch((error) => {
        // The gateway ends the session even if the backend fails.
        if (session.state.isSignedIn) throw error
      })
      if (providerLogout === null) return false
      leave(`${callerOptions.baseUrl ?? ''}${providerLogout}`)
      return true
    },
    close: () => expiry.stop()
  }
}
