import { ApiError } from 'gatehouse-client'
import { onScopeDispose } from 'vue'
import { useLoad as useLoadWith } from '../../../src/ui/useLoad.js'
import type { DataResponse } from '../types.js'

type LoadRequest<Data> = (options: { readonly signal: AbortSignal }) => Promise<DataResponse<Data>>

/** Requests data from the backend whenever `load` is called. */
export const useLoad = <Data>(request: LoadRequest<Data>) =>
  useLoadWith(async (signal) => (await request({ signal })).data, messageOf)

export type Load = Pick<ReturnType<typeof useLoad>, 'error' | 'load'>

/** Requests data at once, and with `everyMs` repeatedly after each response while the page is visible. */
export const useLoaded = <Data>(request: LoadRequest<Data>, everyMs?: number) => {
  const loaded = useLoad(request)
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
