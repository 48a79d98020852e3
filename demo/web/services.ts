import { createClient } from 'gatehouse-client'
import { shallowRef } from 'vue'

/** How the last session ended; `left` after a sign-out in this tab. */
export const sessionEnd = shallowRef<'none' | 'soon' | 'over' | 'left'>('none')

/** Every batch contains everyone on a floor, so a position without an update for this long is outdated. */
const MAX_AGE_MS = 12_000

/** The client of the page. */
export const { api, session, realtime, signOut } = createClient({
  realtime: { maxAgeMs: MAX_AGE_MS },
  onExpiring: () => {
    sessionEnd.value = 'soon'
  },
  onExpired: () => {
    sessionEnd.value = 'over'
  }
})
