import { createClient } from 'gatehouse-client'
import { shallowRef } from 'vue'

/** How the last session ended; `left` after a sign-out in this tab. */
export const sessionEnd = shallowRef<'none' | 'soon' | 'over' | 'left'>('none')

/** While positions are missing, the last known ones stay on the plan, dimmed. */
const MAX_AGE_MS = 15 * 60_000

/** The client of the page. */
export const { api, call, session, realtime, signOut } = createClient({
  realtime: { maxAgeMs: MAX_AGE_MS },
  onExpiring: () => {
    sessionEnd.value = 'soon'
  },
  onExpired: () => {
    sessionEnd.value = 'over'
  }
})
