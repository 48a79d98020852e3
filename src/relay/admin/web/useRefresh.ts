import { watch } from 'vue'
import { useLive } from './useLive.js'
import { useSession } from './useSession.js'

const EVERY_MS = 5000

/** Loads again with the stream's frames, at a slow pace, while somebody is there to see it. */
export const useRefresh = (load: () => Promise<void>): void => {
  const { frame } = useLive()
  const { isSomebodyHere } = useSession()
  let loadedAtMs = Date.now()
  watch(frame, () => {
    if (Date.now() - loadedAtMs < EVERY_MS || !isSomebodyHere()) return
    loadedAtMs = Date.now()
    void load()
  })
}
