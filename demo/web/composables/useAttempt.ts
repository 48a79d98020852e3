import { ref } from 'vue'
import { messageOf } from './useLoad.js'

/** Something that a person does, which may be refused: whether it is going on, and why it went wrong. */
export const useAttempt = () => {
  const fault = ref('')
  const isBusy = ref(false)

  /** True when it was done. */
  const attempt = async (work: () => Promise<unknown>): Promise<boolean> => {
    isBusy.value = true
    fault.value = ''
    try {
      await work()
      return true
    } catch (cause) {
      fault.value = messageOf(cause)
      return false
    } finally {
      isBusy.value = false
    }
  }

  return { fault, isBusy, attempt }
}
