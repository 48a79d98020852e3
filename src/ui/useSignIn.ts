import { computed, nextTick, onScopeDispose, ref, useTemplateRef } from 'vue'
import { waitText } from './format.js'

interface SignInError {
  readonly status: number
  readonly retryAfterSeconds: number | null
}

/**
 * Password sign-in: clears the field after a rejection, and waits after too many attempts. `messageOf` converts an expected
 * error to a message for users, and rethrows any other. The field is the page's `ref="passwordField"`.
 */
export const useSignIn = (messageOf: (cause: unknown) => string) => {
  const password = ref('')
  const rejection = ref('')
  const isTrying = ref(false)
  const waitSeconds = ref(0)
  const field = useTemplateRef<{ focus(): void }>('passwordField')
  const timer = setInterval(() => {
    waitSeconds.value = Math.max(waitSeconds.value - 1, 0)
  }, 1000)
  onScopeDispose(() => clearInterval(timer))

  const attempt = async (signIn: () => Promise<unknown>): Promise<void> => {
    isTrying.value = true
    rejection.value = ''
    try {
      await signIn()
    } catch (cause) {
      const message = messageOf(cause)
      // `messageOf` has rethrown every other error.
      const { status, retryAfterSeconds } = cause as SignInError
      const isRateLimited = status === 429
      waitSeconds.value = isRateLimited ? (retryAfterSeconds ?? 60) : 0
      rejection.value = isRateLimited ? '' : message
      password.value = ''
      await nextTick()
      field.value?.focus()
    } finally {
      isTrying.value = false
    }
  }
  const error = computed(() =>
    waitSeconds.value > 0 ? `Too many attempts. Try again in ${waitText(waitSeconds.value)}.` : rejection.value
  )
  return { password, error, isBusy: computed(() => isTrying.value || waitSeconds.value > 0), attempt }
}
