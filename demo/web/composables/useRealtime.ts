import { onScopeDispose } from 'vue'
import { realtime } from '../services.js'

let users = 0

/** Keeps the connection to the relay open while a component that uses it is mounted. */
export const useRealtime = () => {
  users += 1
  realtime.start()
  onScopeDispose(() => {
    users -= 1
    if (users === 0) realtime.stop()
  })
  return realtime
}
