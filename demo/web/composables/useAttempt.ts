import { ApiError } from 'gatehouse-client'
import { ref, shallowRef } from 'vue'

/** A user action that may be rejected: whether it is running, and its error. */
export const useAttempt = () => {
  const error = shallowRef<ApiError | null>(null)
  const isBusy = ref(false)

  /** Resolves to true on success. Does nothing while it is running: the button is not disabled, so that it keeps the focus. */
  const attempt = async (work: () => Promise<unknown>): Promise<boolean> => {
    if (isBusy.value) return false
    isBusy.value = true
    error.value = null
    try {
      await work()
      return true
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause
      error.value = cause
      return false
    } finally {
      isBusy.value = false
    }
  }

  return { error, isBusy, attempt }
}
