import type { PageMeta } from 'gatehouse-client'
import { useSession as useClientSession } from 'gatehouse-client/vue'
import { computed } from 'vue'
import { useToasts } from '../../../src/ui/useToasts.js'
import { router } from '../router.js'
import { api, sessionEnd, signOut } from '../services.js'
import { messageOf } from './useLoad.js'
import { mayLosePage } from './useUnsavedChanges.js'

const { showToast } = useToasts()

const signIn = async (email: string, password: string): Promise<void> => {
  await api.auth.login({ email, password })
  sessionEnd.value = 'none'
}

/** Signs out and shows the login page. If the gateway rejects the logout, the session continues. */
const leave = async (): Promise<void> => {
  if (!mayLosePage()) return
  sessionEnd.value = 'left'
  try {
    const isLeaving = await signOut()
    if (!isLeaving) await router.push('/login')
  } catch (error) {
    sessionEnd.value = 'none'
    showToast(`You are still signed in. ${messageOf(error)}`)
  }
}

/** The current user and permissions, for display. The backend enforces permissions. */
export const useSession = () => {
  const { user, isSignedIn, permissions } = useClientSession()
  const granted = computed(() => new Set(permissions.value))
  const may = (permission: string): boolean => granted.value.has(permission)
  return {
    user,
    name: computed(() => user.value?.displayName ?? user.value?.email ?? 'Unknown user'),
    isSignedIn,
    sessionEnd,
    may,
    maySee: ({ permissions: all = [], permissionsAny: any = [] }: PageMeta): boolean =>
      all.every(may) && (any.length === 0 || any.some(may)),
    signIn,
    leave
  }
}
