import type { PageMeta } from 'gatehouse-client'
import { computed, shallowRef, watch } from 'vue'
import { useToasts } from '../../../src/ui/useToasts.js'
import { router } from '../router.js'
import { api, session, sessionEnd, signOut } from '../services.js'
import { messageOf } from './useLoad.js'
import { mayLosePage } from './useUnsavedChanges.js'

const state = shallowRef(session.state)
session.onChange((changed) => {
  state.value = changed
  // Also after a sign-in through the provider.
  if (changed.isSignedIn && sessionEnd.value !== 'soon') sessionEnd.value = 'none'
})

const { showToast } = useToasts()
const permissions = computed(() => new Set(state.value.permissions))
const may = (permission: string): boolean => permissions.value.has(permission)

const isSignedIn = computed(() => state.value.isSignedIn)

/** The current user and permissions, for display. The backend enforces permissions. */
export const useSession = () => ({
  user: computed(() => state.value.user),
  name: computed(() => state.value.user?.displayName ?? state.value.user?.email ?? 'Unknown user'),
  isSignedIn,
  onSignedOut: (listener: () => void) => watch(isSignedIn, (isIn) => isIn || listener()),
  sessionEnd,
  may,
  maySee: ({ permissions: all = [], permissionsAny: any = [] }: PageMeta): boolean =>
    all.every(may) && (any.length === 0 || any.some(may)),
  signIn: async (email: string, password: string): Promise<void> => {
    await api.auth.login({ email, password })
    sessionEnd.value = 'none'
  },
  /** If the gateway rejects the logout, the session continues. */
  leave: async (): Promise<void> => {
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
})
