import { onScopeDispose, type Ref, ref } from 'vue'
import { usePositions } from './usePositions.js'

/** A change that follows from the time, or that the relay could not deliver, is shown after this time. */
const REFRESH_MS = 30_000

/** Increases when another user may have changed people, visits or things, so that a list loads again. */
export const useSiteChanges = (): Readonly<Ref<number>> => {
  const changes = ref(0)
  const change = (): void => {
    if (!document.hidden) changes.value += 1
  }
  const positions = usePositions()
  const listeners = [
    positions.on('publication', ({ data }) => data.type === 'site-changed' && change()),
    positions.on('gap', ({ channel }) => channel === 'global:all' && change())
  ]
  const timer = setInterval(change, REFRESH_MS)
  onScopeDispose(() => {
    clearInterval(timer)
    for (const stopListening of listeners) stopListening()
  })
  return changes
}
