import { shallowRef } from 'vue'
import { api } from '../services.js'
import type { Answer, Emergency } from '../types.js'
import { messageOf, usePolling } from './useLoad.js'
import { useSession } from './useSession.js'

const ASK_EVERY_MS = 10_000
const active = shallowRef<Emergency | null>(null)

const refresh = async (): Promise<void> => {
  if (!useSession().may('emergency.read')) return
  try {
    active.value = (await api.emergency.active<Answer<Emergency | null>>()).data
  } catch (error) {
    // The next time may be better; nothing on the page depends on this one.
    messageOf(error)
  }
}

/** The emergency that is going on, for the banner on every page. */
export const useEmergency = () => {
  usePolling(refresh, ASK_EVERY_MS)
  return { active, refresh }
}
