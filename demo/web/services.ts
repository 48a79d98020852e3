import { shallowRef } from 'vue'
import { createApi } from '../../src/client/api/api.js'
import type { ApiError } from '../../src/client/api/api-error.js'
import { systemClock } from '../../src/client/clock.js'
import { watchExpiry } from '../../src/client/session/expiry-watch.js'
import { Session } from '../../src/client/session/session.js'

// One of each for the whole page. What they say becomes something that components can watch.

export const api = createApi({ onSettled: (error) => settled(error) })
export const session = new Session({ askBackend: () => api.auth.backendMe() })

/** How the last session came to its end, until somebody signs in. */
export const sessionEnd = shallowRef<'none' | 'soon' | 'over'>('none')

const expiry = watchExpiry({
  session,
  clock: systemClock,
  onExpiring: () => {
    sessionEnd.value = 'soon'
  },
  onExpired: () => {
    sessionEnd.value = 'over'
  }
})

// A wrong password is refused with the same status, and ends nothing.
const ENDS_SESSION: ReadonlySet<string> = new Set(['UNAUTHENTICATED', 'TOKEN_EXPIRED'])

const settled = (error: ApiError | null): void => {
  session.refresh()
  if (error?.status === 401 && ENDS_SESSION.has(error.code)) expiry.endNow()
}
