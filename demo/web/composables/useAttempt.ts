import { ref, shallowRef } from 'vue'
import { ApiError } from '../../../src/client/api/api-error.js'

/** Something that a person does, which may be refused: whether it is going on, and why it went wrong. */
export const useAttempt = () => {
  const refusal = shallowRef<ApiError | null>(null)
  const isBusy = ref(false)

  /** True when it was done. */
  const attempt = async (work: () => Promise<unknown>): Promise<boolean> => {
    isBusy.value = true
    refusal.value = null
    try {
      await work()
      return true
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause
      refusal.value = cause
      return false
    } finally {
      isBusy.value = false
    }
  }

  return { refusal, isBusy, attempt }
}
