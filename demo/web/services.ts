import { RelayError } from 'gatehouse-client'
import { createBuildingClient } from 'gatehouse-client/buildings'
import { shallowRef } from 'vue'
import type { DataResponse } from './types.js'

/** How the last session ended; `left` after a sign-out in this tab. */
export const sessionEnd = shallowRef<'none' | 'soon' | 'over' | 'left'>('none')

/** While positions are missing, the last known ones stay on the plan, dimmed. */
const MAX_AGE_MS = 15 * 60_000

export const client = createBuildingClient({
  positions: { maxAgeMs: MAX_AGE_MS },
  onExpiring: () => {
    sessionEnd.value = 'soon'
  },
  onExpired: () => {
    sessionEnd.value = 'over'
  }
})
export const { api, call, session, realtime, positions, signOut } = client

session.onChange(({ isSignedIn }) => {
  // Also after a sign-in through the provider.
  if (isSignedIn && sessionEnd.value !== 'soon') sessionEnd.value = 'none'
})

interface Acknowledged {
  readonly affected: number
}

/**
 * Acknowledges alerts with a call through the relay, or with a request if that fails: the relay may have no RPC proxy, or no
 * connection. The backend decides about both in the same way.
 */
export const acknowledgeAlerts = async (ids: readonly string[]): Promise<Acknowledged> => {
  try {
    return await realtime.rpc<Acknowledged>('alerts.acknowledge', { ids })
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const body = { ids }
    return (await call<DataResponse<Acknowledged>>('POST', '/api/alerts/acknowledge', { body })).data
  }
}
