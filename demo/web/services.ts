import { RelayError } from 'gatehouse-client'
import { createBuildingClient } from 'gatehouse-client/buildings'
import { shallowRef } from 'vue'
import type { EmergencyTrigger } from '../../schemas/emergency.js'
import type { DataResponse, Emergency } from './types.js'

/** How the last session ended; `left` after a sign-out in this tab. */
export const sessionEnd = shallowRef<'none' | 'soon' | 'over' | 'left'>('none')

const TRIGGER_PATH = '/api/emergency/trigger'

/** While positions are missing, the last known ones stay on the plan, dimmed. */
const MAX_AGE_MS = 15 * 60_000

/** The typed calls have no headers, so the key of an alarm is added to its request. */
let alarmKey = ''

export const client = createBuildingClient({
  fetch: (input, init) => {
    const isAlarm = String(input).endsWith(TRIGGER_PATH)
    const headers = new Headers(init?.headers)
    if (isAlarm) headers.set('idempotency-key', alarmKey)
    return fetch(input, isAlarm ? { ...init, headers } : init)
  },
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

/** Raises an alarm or starts a drill. A repeated request with the same key does not raise another one. */
export const raiseAlarm = async (key: string, body: EmergencyTrigger, signal: AbortSignal): Promise<Emergency> => {
  alarmKey = key
  return (await api.emergency.trigger<DataResponse<Emergency>>(body, { signal })).data
}
