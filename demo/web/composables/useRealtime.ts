import { ref, shallowRef } from 'vue'
import type { AmbientEntry } from '../../../schemas/realtime.js'
import { Realtime } from '../../../src/client/realtime/realtime.js'
import { api, session } from '../services.js'

/** Everybody on a floor is in every batch: who is missing for this long has left it. */
const MAX_AGE_MS = 12_000
const AMBIENT_AGE_MS = 60_000

export const realtime = new Realtime({ negotiate: () => api.negotiate.read(), maxAgeMs: MAX_AGE_MS })

const state = ref(realtime.state)
const lastUpdateMs = ref(realtime.lastUpdateMs)
const ambient = shallowRef<readonly AmbientEntry[]>([])
const heard = new Map<string, { readonly entry: AmbientEntry; readonly atMs: number }>()

realtime.on('state', (changed) => {
  state.value = changed
})
realtime.on('position-batch', () => {
  lastUpdateMs.value = realtime.lastUpdateMs
})
realtime.on('ambient-batch', ({ data }) => {
  const now = Date.now()
  lastUpdateMs.value = realtime.lastUpdateMs
  for (const entry of data) heard.set(String(entry.deviceId), { entry, atMs: now })
  for (const [id, { atMs }] of heard) if (now - atMs > AMBIENT_AGE_MS) heard.delete(id)
  ambient.value = [...heard.values()].map(({ entry }) => entry)
})
session.onChange(({ isSignedIn }) => {
  if (!isSignedIn) realtime.stop()
})

/** The live connection: how it is, when it last said something, and which strange devices it told of. */
export const useRealtime = () => {
  realtime.start()
  return { state, lastUpdateMs, ambient, reconnect: () => realtime.start() }
}
