import { watch } from 'vue'
import { useLoad } from '../ui/useLoad.js'
import { get, messageOf, type Question } from './api.js'
import { useLive } from './useLive.js'

const AGAIN_AFTER_MS = 5000

/** What the relay answers: now, whenever `load` is called, and with the stream's frames again at a slow pace. */
export const useAnswer = <Answer>(path: string, query: () => NonNullable<Question['query']> = () => ({})) => {
  const { frame } = useLive()
  let loadedAtMs = Date.now()
  let isByItself = false
  const { data, error, isLoading, load } = useLoad((signal) => {
    loadedAtMs = Date.now()
    return get<Answer>(path, { query: query(), signal, isByItself })
  }, messageOf)

  watch(frame, () => {
    if (document.hidden || isLoading.value || Date.now() - loadedAtMs < AGAIN_AFTER_MS) return
    isByItself = true
    void load()
    isByItself = false
  })
  void load()
  return { data, error, isLoading, load }
}
