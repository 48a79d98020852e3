import { shallowRef } from 'vue'
import type { Session } from '../relay/admin/contract.js'
import { get, lastAskedAtMs, onSignedOut, post, Refused, rememberCsrf } from './api.js'

export type SignedIn =
  | { readonly state: 'asking' }
  | { readonly state: 'in'; readonly session: Session }
  /** `hasEnded`: somebody was signed in before, and did not leave on their own. */
  | { readonly state: 'out'; readonly hasEnded: boolean }
  | { readonly state: 'unreachable' }

const KEEP_AFTER_MS = 60_000
const signedIn = shallowRef<SignedIn>({ state: 'asking' })
let inputAtMs = Date.now()

const notice = (): void => {
  inputAtMs = Date.now()
}
for (const name of ['pointerdown', 'pointermove', 'keydown', 'wheel']) addEventListener(name, notice, { passive: true })

const end = (): void => {
  if (signedIn.value.state !== 'out') signedIn.value = { state: 'out', hasEnded: signedIn.value.state === 'in' }
}
onSignedOut(end)

/** Asks who we are; a relay that does not answer leaves what is known. */
const ask = async (isByItself = false): Promise<void> => {
  try {
    const session = await get<Session>('session', { isByItself })
    rememberCsrf(session.csrf)
    signedIn.value = { state: 'in', session }
  } catch (cause) {
    if (!(cause instanceof Refused)) throw cause
    if (signedIn.value.state === 'asking') signedIn.value = { state: 'unreachable' }
  }
}

const signIn = async (password: string): Promise<void> => {
  await post('sign-in', { password })
  await ask()
}

const signOut = async (): Promise<void> => {
  await post('sign-out')
  signedIn.value = { state: 'out', hasEnded: false }
}

/** Who moves the mouse over charts asks for nothing, and is not idle. */
const keepAlive = (): void => {
  const isDue = Date.now() - lastAskedAtMs() > KEEP_AFTER_MS
  if (signedIn.value.state === 'in' && isDue && inputAtMs > lastAskedAtMs()) void ask()
}

export const useSession = () => ({ signedIn, ask, signIn, signOut, end, keepAlive })
