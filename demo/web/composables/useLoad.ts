import { onScopeDispose } from 'vue'
import { ApiError } from '../../../src/client/api/api-error.js'
import { useLoad as useLoadWith } from '../../../src/ui/useLoad.js'
import type { Answer } from '../types.js'

type Ask<Data> = (options: { readonly signal: AbortSignal }) => Promise<Answer<Data>>

/** Requests data from the backend whenever `load` is called. */
export const useLoad = <Data>(ask: Ask<Data>) => useLoadWith(async (signal) => (await ask({ signal })).data, messageOf)

export type Load = Pick<ReturnType<typeof useLoad>, 'error' | 'load'>

/** Requests data at once, and with `everyMs` repeatedly after each response while the page is visible. */
export const useLoaded = <Data>(ask: Ask<Data>, everyMs?: number) => {
  const loaded = useLoad(ask)
  let stopped = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const next = async (): Promise<void> => {
    if (everyMs === undefined || !document.hidden) await loaded.load()
    if (everyMs !== undefined && !stopped) timer = setTimeout(next, everyMs)
  }
  void next()
  onScopeDispose(() => {
    stopped = true
    clearTimeout(timer)
  })
  return loaded
}

export const messageOf = (error: unknown): string => {
  if (error instanceof ApiError) return error.message
  throw error
}
