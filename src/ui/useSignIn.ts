import { computed, nextTick, onScopeDispose, ref, useTemplateRef } from 'vue'
import { waitText } from './format.js'

interface Refusal {
  readonly status: number
  readonly retryAfterSeconds: number | null
}

/**
 * Password sign-in: clears the field after a rejection, and waits after too many attempts. `faultOf` converts an expected
 * error to a message for users, and rethrows any other. The field is the page's `ref="passwordField"`.
 */
export const useSignIn = (faultOf: (cause: unknown) => string) => {
  const password = ref('')
  const refused = ref('')
  const isTrying = ref(false)
  const waitSeconds = ref(0)
  const field = useTemplateRef<{ focus(): void }>('passwordField')
  const timer = setInterval(() => {
    waitSeconds.value = Math.max(waitSeconds.value - 1, 0)
  }, 1000)
  onScopeDispose(() => clearInterval(timer))

  const attempt = async (signIn: () => Promise<unknown>): Promise<void> => {
    isTrying.value = true
    refused.value = ''
    try {
      await signIn()
    } catch (cause) {
      const fault = faultOf(cause)
      // `faultOf` has rethrown every other error.
      const { status, retryAfterSeconds } = cause as Refusal
      const isTooOften = status === 429
      waitSeconds.value = isTooOften ? (retryAfterSeconds ?? 60) : 0
      refused.value = isTooOften ? '' : fault
      password.value = ''
      await nextTick()
      field.value?.focus()
    } finally {
      isTrying.value = false
    }
  }
  const fault = computed(() =>
    waitSeconds.value > 0 ? `Too many attempts. Try again in ${waitText(waitSeconds.value)}.` : refused.value
  )
  return { password, fault, isBusy: computed(() => isTrying.value || waitSeconds.value > 0), attempt }
}
