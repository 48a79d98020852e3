import { computed, ref } from 'vue'
import { PasswordResetSchema } from '../../../schemas/users.js'
import { api } from '../services.js'
import { useAttempt } from './useAttempt.js'
import { useSession } from './useSession.js'

export const { minLength: MIN_PASSWORD_LENGTH } = PasswordResetSchema.properties.newPassword

/** The form with which users choose their own password. */
export const useNewPassword = () => {
  const { user, signIn } = useSession()
  const { error: apiError, isBusy, attempt } = useAttempt()
  const current = ref('')
  const password = ref('')
  const repeated = ref('')
  const isDifferent = ref(false)
  const error = computed(() => {
    if (isDifferent.value) return 'The passwords do not match.'
    if (apiError.value?.fieldError('currentPassword')) return 'The current password is wrong.'
    return apiError.value?.message ?? ''
  })
  /** Resolves to true if the password was changed. */
  const change = async (): Promise<boolean> => {
    const { userId, email } = user.value ?? {}
    isDifferent.value = password.value !== repeated.value
    if (!userId || !email || isDifferent.value) return false
    const newPassword = password.value
    const isChanged = await attempt(async () => {
      const body = { newPassword, ...(current.value && { currentPassword: current.value }) }
      await api.users.resetPassword(userId, body)
      // The password change has ended the session.
      await signIn(email, newPassword)
    })
    if (isChanged) current.value = password.value = repeated.value = ''
    return isChanged
  }
  return { current, password, repeated, error, isBusy, change }
}
