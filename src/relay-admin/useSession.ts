import { shallowRef } from 'vue'
import type { AdminSession } from '../relay/admin/contract.js'
import { get, lastRequestAtMs, onSignedOut, post, RequestError, setCsrfToken } from './api.js'

export type SignedIn =
  | { readonly state: 'loading' }
  | { readonly state: 'in'; readonly session: AdminSession }
  /** `hasEnded`: the session expired or was ended elsewhere. */
  | { readonly state: 'out'; readonly hasEnded: boolean }
  | { readonly state: 'unreachable' }

const KEEP_ALIVE_MS = 60_000
const signedIn = shallowRef<SignedIn>({ state: 'loading' })
let inputAtMs = Date.now()

const recordInput = (): void => {
  inputAtMs = Date.now()
}
for (const name of ['pointerdown', 'pointermove', 'keydown', 'wheel'])
  addEventListener(name, recordInput, { passive: true })

const end = (): void => {
  if (signedIn.value.state !== 'out') signedIn.value = { state: 'out', hasEnded: signedIn.value.state === 'in' }
}
onSignedOut(end)

/** Loads the session. If the relay does not respond, the state is unchanged. */
const loadSession = async (isAutomatic = false): Promise<void> => {
  try {
    const session = await get<AdminSession>('session', { isAutomatic })
    setCsrfToken(session.csrf)
    signedIn.value = { state: 'in', session }
  } catch (cause) {
    if (!(cause instanceof RequestError)) throw cause
    if (signedIn.value.state === 'loading') signedIn.value = { state: 'unreachable' }
  }
}

/** Tabs share the cookie of the session, so a sign-in or sign-out in one of them applies to all. */
const otherTabs = new BroadcastChannel('relay-admin-session')
otherTabs.addEventListener('message', () => void loadSession(true))

const signIn = async (password: string): Promise<void> => {
  await post('sign-in', { password })
  await loadSession()
  otherTabs.postMessage(null)
}

const signOut = async (): Promise<void> => {
  await post('sign-out')
  signedIn.value = { state: 'out', hasEnded: false }
  otherTabs.postMessage(null)
}

/** Extends the session of an operator who uses the page without causing requests. */
const keepAlive = (): void => {
  const isDue = Date.now() - lastRequestAtMs() > KEEP_ALIVE_MS
  if (signedIn.value.state === 'in' && isDue && inputAtMs > lastRequestAtMs()) void loadSession()
}

export const useSession = () => ({ signedIn, loadSession, signIn, signOut, end, keepAlive })
