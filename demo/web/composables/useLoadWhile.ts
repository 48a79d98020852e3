import { computed, effectScope, shallowRef, watch } from 'vue'
import { type LoadRequest, useLoaded } from './useLoad.js'

/**
 * Requests data for a key at once, when it changes, and with `everyMs` repeatedly. Without a key there are no requests and
 * no data.
 */
export const useLoadWhile = <Data>(
  key: () => string | null,
  request: (key: string, ...options: Parameters<LoadRequest<Data>>) => ReturnType<LoadRequest<Data>>,
  everyMs?: number
) => {
  const current = shallowRef<ReturnType<typeof useLoaded<Data>> | null>(null)
  watch(
    key,
    (value, _previous, onCleanup) => {
      const scope = effectScope(true)
      onCleanup(() => scope.stop())
      current.value = scope.run(() => value && useLoaded((options) => request(value, options), everyMs)) || null
    },
    { immediate: true }
  )
  return {
    data: computed((): Data | null => current.value?.data.value ?? null),
    /** For `LoadState`. */
    loads: computed(() => (current.value ? [current.value] : []))
  }
}
