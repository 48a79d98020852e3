import { ref, shallowRef } from 'vue'
import type { AmbientEntry } from '../../../schemas/realtime.js'
import { realtime, session } from '../services.js'

const AMBIENT_AGE_MS = 60_000

const state = ref(realtime.state)
const ambient = shallowRef<readonly AmbientEntry[]>([])
const heard = new Map<string, { readonly entry: AmbientEntry; readonly atMs: number }>()

realtime.on('state', (changed) => {
  state.value = changed
})
realtime.on('ambient-batch', ({ data }) => {
  const now = Date.now()
  for (const entry of data) heard.set(String(entry.deviceId), { entry, atMs: now })
  for (const [id, { atMs }] of heard) if (now - atMs > AMBIENT_AGE_MS) heard.delete(id)
  ambient.value = [...heard.values()].map(({ entry }) => entry)
})
session.onChange(({ isSignedIn }) => {
  if (!isSignedIn) realtime.stop()
})

/** At once, rather than after the next pause. */
const reconnect = (): void => {
  realtime.stop()
  realtime.start()
}

/** The live connection: how it is, and which strange devices it told of. */
export const useRealtime = () => {
  realtime.start()
  return { state, ambient, reconnect }
}
