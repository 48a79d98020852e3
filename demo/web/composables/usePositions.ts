import { onScopeDispose } from 'vue'
import { positions } from '../services.js'

/** Receives the messages for all floors while the component is mounted. */
export const usePositions = () => {
  onScopeDispose(positions.watchAll())
  return positions
}
