import { shallowRef } from 'vue'
import { createClient } from '../../src/client/client.js'

/** How the session came to its end, until somebody signs in. Who signs out here has left. */
export const sessionEnd = shallowRef<'none' | 'soon' | 'over' | 'left'>('none')

/** Everybody on a floor is in every batch: who is missing for this long has left it. */
const MAX_AGE_MS = 12_000

/** One client for the whole page. */
export const { api, session, realtime, signOut } = createClient({
  realtime: { maxAgeMs: MAX_AGE_MS },
  onExpiring: () => {
    sessionEnd.value = 'soon'
  },
  onExpired: () => {
    sessionEnd.value = 'over'
  }
})
