import { onScopeDispose } from 'vue'
import { ApiError } from '../../../src/client/api/api-error.js'
import { useLoad as useLoadWith } from '../../../src/ui/useLoad.js'
import type { Answer } from '../types.js'

/** Something that the backend is asked for. */
export const useLoad = <Data>(ask: (options: { readonly signal: AbortSignal }) => Promise<Answer<Data>>) =>
  useLoadWith(async (signal) => (await ask({ signal })).data, messageOf)

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
