import { useRouter } from 'vue-router'
import { useToasts } from '../../../src/ui/useToasts.js'
import { signOut } from '../services.js'
import { useAttempt } from './useAttempt.js'

/** The gateway counts signing out among the attempts to sign in, and may say no: then the session is still there. */
export const useSignOut = () => {
  const router = useRouter()
  const { fault, attempt } = useAttempt()
  const { say } = useToasts()

  return async (): Promise<void> => {
    let isLeaving = false
    const isDone = await attempt(async () => {
      isLeaving = await signOut()
    })
    if (!isDone) say(`You are still signed in. ${fault.value}`)
    else if (!isLeaving) await router.push('/login')
  }
}
