import { ref, shallowRef, watch } from 'vue'
import { useLoad } from '../ui/useLoad.js'
import { type GetOptions, get, RequestError, requestErrorText } from './api.js'
import { useLive } from './useLive.js'

const REFRESH_MS = 5000

/** A response that the same request would get again. */
const isRejection = (cause: unknown): cause is RequestError =>
  cause instanceof RequestError && cause.status >= 400 && cause.status < 500

/**
 * Loads a resource at once, whenever `load` is called, and regularly while the live stream delivers samples, until the relay
 * rejects the request.
 */
export const useApi = <Result>(path: string, query: () => NonNullable<GetOptions['query']> = () => ({})) => {
  const { sample, now } = useLive()
  let loadedAtMs = Date.now()
  /** The time of the data on the clock of the relay. Ages in a list are relative to it, so that they agree with its other columns. */
  const dataTime = ref(now.value)
  let isAutomatic = false
  const rejection = shallowRef<RequestError | null>(null)
  const { data, error, isLoading, load } = useLoad(
    async (signal) => {
      loadedAtMs = Date.now()
      const result = await get<Result>(path, { query: query(), signal, isAutomatic })
      rejection.value = null
      dataTime.value = now.value
      return result
    },
    (cause) => {
      rejection.value = isRejection(cause) ? cause : null
      return requestErrorText(cause)
    }
  )

  watch(sample, () => {
    if (rejection.value !== null || document.hidden || isLoading.value) return
    if (Date.now() - loadedAtMs < REFRESH_MS) return
    isAutomatic = true
    void load()
    isAutomatic = false
  })
  void load()
  return { data, dataTime, error, rejection, isLoading, load }
}
