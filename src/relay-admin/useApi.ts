import { watch } from 'vue'
import { useLoad } from '../ui/useLoad.js'
import { type GetOptions, get, messageOf } from './api.js'
import { useLive } from './useLive.js'

const REFRESH_MS = 5000

/** Loads a resource at once, whenever `load` is called, and regularly while the live stream delivers samples. */
export const useApi = <Result>(path: string, query: () => NonNullable<GetOptions['query']> = () => ({})) => {
  const { sample } = useLive()
  let loadedAtMs = Date.now()
  let isAutomatic = false
  const { data, error, isLoading, load } = useLoad((signal) => {
    loadedAtMs = Date.now()
    return get<Result>(path, { query: query(), signal, isAutomatic })
  }, messageOf)

  watch(sample, () => {
    if (document.hidden || isLoading.value || Date.now() - loadedAtMs < REFRESH_MS) return
    isAutomatic = true
    void load()
    isAutomatic = false
  })
  void load()
  return { data, error, isLoading, load }
}
