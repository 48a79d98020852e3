import { ApiError, backoffMs } from 'gatehouse-client'
import { onScopeDispose, ref } from 'vue'
import { useLoad as useLoadWith } from '../../../src/ui/useLoad.js'
import type { DataResponse } from '../types.js'

export type LoadRequest<Data> = (options: { readonly signal: AbortSignal }) => Promise<DataResponse<Data>>

/** Data such as the muster must not be outdated for long after an outage. */
const RETRY_DELAYS = { minMs: 1000, maxMs: 10_000 }
/** A connection that broke without notice, such as that of a sleeping laptop, does not end by itself. */
const RESPONSE_WITHIN_MS = 30_000

/**
 * Requests data from the backend whenever `load` is called, and with `everyMs` again after each response while the page is
 * visible. While the service is unavailable, the request is repeated with growing delays.
 */
export const useLoad = <Data>(request: LoadRequest<Data>, everyMs?: number) => {
  const isRetrying = ref(false)
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const loadIn = (delayMs: number | undefined): void => {
    clearTimeout(timer)
    if (delayMs !== undefined) timer = setTimeout(() => (isPaused() ? loadIn(everyMs) : void load()), delayMs)
  }
  const isPaused = (): boolean => everyMs !== undefined && document.hidden

  const { load: loadOnce, ...loaded } = useLoadWith(async (signal) => {
    const deadline = AbortSignal.timeout(RESPONSE_WITHIN_MS)
    try {
      const { data } = await request({ signal: AbortSignal.any([signal, deadline]) })
      if (!signal.aborted) {
        failures = 0
        isRetrying.value = false
        loadIn(everyMs)
      }
      return data
    } catch (cause) {
      const error = deadline.aborted ? noResponse(cause) : cause
      if (!signal.aborted) {
        failures += 1
        isRetrying.value = error instanceof ApiError && error.retryable
        loadIn(isRetrying.value ? backoffMs(failures, RETRY_DELAYS) : everyMs)
      }
      throw error
    }
  }, messageOf)
  const load = (): Promise<void> => {
    loadIn(undefined)
    return loadOnce()
  }

  onScopeDispose(() => clearTimeout(timer))
  return { ...loaded, isRetrying, load }
}

/** The part of a request that `LoadState` shows. */
export type Load = Pick<ReturnType<typeof useLoad>, 'data' | 'error' | 'isLoading' | 'isRetrying' | 'load'>

/** Requests data at once, and with `everyMs` repeatedly. */
export const useLoaded = <Data>(request: LoadRequest<Data>, everyMs?: number) => {
  const loaded = useLoad(request, everyMs)
  void loaded.load()
  return loaded
}

const noResponse = (cause: unknown): ApiError =>
  new ApiError({ code: 'NETWORK_FAILED', message: 'The service does not respond.', cause })

export const messageOf = (error: unknown): string => {
  if (error instanceof ApiError) return error.message
  throw error
}
