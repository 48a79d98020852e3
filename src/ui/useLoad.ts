import { onScopeDispose, ref, shallowRef } from 'vue'

/**
 * Loads data whenever `load` is called and ignores outdated responses. `messageOf` converts an expected error to a message
 * for users, and rethrows any other.
 */
export const useLoad = <Data>(
  request: (signal: AbortSignal) => Promise<Data>,
  messageOf: (cause: unknown) => string
) => {
  const data = shallowRef<Data | null>(null)
  const error = ref('')
  const isLoading = ref(false)
  let running = new AbortController()

  const load = async (): Promise<void> => {
    running.abort()
    running = new AbortController()
    const { signal } = running
    isLoading.value = true
    try {
      const response = await request(signal)
      if (signal.aborted) return
      data.value = response
      error.value = ''
    } catch (cause) {
      if (!signal.aborted) error.value = messageOf(cause)
    } finally {
      if (!signal.aborted) isLoading.value = false
    }
  }

  onScopeDispose(() => running.abort())
  return { data, error, isLoading, load }
}
