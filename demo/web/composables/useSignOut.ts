import { useRouter } from 'vue-router'
import { useToasts } from '../../../src/ui/useToasts.js'
import { sessionEnd, signOut } from '../services.js'
import { messageOf } from './useLoad.js'

/** The gateway counts signing out among the attempts to sign in, and may say no: then the session is still there. */
export const useSignOut = () => {
  const router = useRouter()
  const { say } = useToasts()

  return async (): Promise<void> => {
    sessionEnd.value = 'left'
    try {
      const isLeaving = await signOut()
      if (!isLeaving) await router.push('/login')
    } catch (error) {
      sessionEnd.value = 'none'
      say(`You are still signed in. ${messageOf(error)}`)
    }
  }
}
