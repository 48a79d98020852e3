import {
  getCurrentInstance,
  getCurrentScope,
  onMounted,
  type ShallowRef,
  shallowRef,
  type WatchSource,
  watch
} from 'vue'
import type { Store } from '../stores/store.js'

/**
 * The state of a store until the scope ends, and of another one whenever the source changes. In a component it starts with
 * the mount, so that a server opens nothing and a hydrated page starts with what the server has rendered.
 */
export const followStore = <State>(
  source: WatchSource | readonly WatchSource[],
  create: () => Store<State>
): Readonly<ShallowRef<State>> => {
  const state = shallowRef(create().initial)
  const scope = getCurrentScope()
  const start = (): void => {
    watch(
      source,
      (_value, _previous, onCleanup) => {
        const store = create()
        const update = (): void => {
          state.value = store.getState()
        }
        onCleanup(store.subscribe(update))
        update()
      },
      { immediate: true }
    )
  }
  if (getCurrentInstance() !== null) onMounted(() => scope?.run(start))
  else start()
  return state
}
