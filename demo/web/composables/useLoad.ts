import { onScopeDispose, ref, shallowRef } from 'vue'
import { ApiError } from '../../../src/client/api/api-error.js'

/** Something that is asked for, now and whenever `load` is called; an answer that was overtaken is dropped. */
export const useLoad = <Data>(ask: (signal: AbortSignal) => Promise<Data>) => {
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

/** Asks again and again, each time when the last answer is there; not while nobody looks at the page. */
export const usePolling = (load: () => Promise<void>, everyMs: number): void => {
  let stopped = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const next = async (): Promise<void> => {
    if (!document.hidden) await load()
    if (!stopped) timer = setTimeout(next, everyMs)
  }
  void next()
  onScopeDispose(() => {
    stopped = true
    clearTimeout(timer)
  })
}

export const messageOf = (error: unknown): string => {
  if (error instanceof ApiError) return error.message
  throw error
}
