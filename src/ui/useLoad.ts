import { onScopeDispose, ref, shallowRef } from 'vue'

/**
 * Something that is asked for whenever `load` is called; an answer that was overtaken is dropped. `messageOf` says what a
 * refusal means to people, and throws on what is none.
 */
export const useLoad = <Data>(ask: (signal: AbortSignal) => Promise<Data>, messageOf: (cause: unknown) => string) => {
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
      const answer = await ask(signal)
      if (signal.aborted) return
      data.value = answer
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
