import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Type } from '@sinclair/typebox'
import type { Attempt, Attempts } from './attempts.js'
import type { AdminCall } from './call.js'
import { setSessionCookie } from './cookies.js'
import { networkOf } from './network-of.js'
import type { SessionKeys } from './session-keys.js'
import type { Sessions } from './sessions.js'

const BODY = Type.Object({ password: Type.String({ maxLength: 1024 }) }, { additionalProperties: false })
const MAX_BODY_BYTES = 8192

export interface SignInParts {
  readonly sessions: Sessions
  readonly keys: () => SessionKeys
  readonly password: () => string
  readonly attempts: Attempts
  /** The browser speaks https with somebody in front whom the relay believes. */
  readonly isForwardedHttps: (request: IncomingMessage) => boolean
  /** The other nodes count too. */
  readonly tell: (attempt: Attempt) => void
  readonly log: { info(facts: object, message: string): void; warn(facts: object, message: string): void }
}

export const signIn = (parts: SignInParts) => {
  const { sessions, keys, password, attempts, isForwardedHttps, tell, log } = parts

  const count = (attempt: Attempt): void => {
    attempts.count(attempt)
    tell(attempt)
  }

  const limited = (call: AdminCall): boolean => {
    const waitMs = attempts.waitMs(networkOf(call.address))
    if (waitMs === 0) return false
    const seconds = Math.ceil(waitMs / 1000)
    call.refuse(429, 'TOO_MANY_ATTEMPTS', `Too many attempts: try again in ${Math.ceil(seconds / 60)} minutes.`, [
      'Retry-After',
      String(seconds)
    ])
    return true
  }

  return async (call: AdminCall): Promise<void> => {
    // Who is locked out is not even read.
    if (limited(call)) return
    await call.body(BODY, MAX_BODY_BYTES, (body) => {
      // Others may have failed while the body came in; from here on nothing is waited for, so none slips through.
      if (limited(call)) return
      const { address, request } = call
      const network = networkOf(address)
      if (!isSamePassword(body.password, password())) {
        count({ network, isRight: false })
        log.warn({ address }, 'wrong password for the admin page')
        call.refuse(401, 'WRONG_PASSWORD', 'The password is wrong.')
        return
      }
      count({ network, isRight: true })
      log.info({ address }, 'an operator signed in')
      // The page's own address is over https where its origin is, whether or not a proxy says so.
      const isSecure = isForwardedHttps(request) || (request.headers.origin ?? '').startsWith('https:')
      const session = sessions.begin(isSecure)
      call.cookie = setSessionCookie(keys().sign(session), isSecure)
      call.nothing()
    })
  }
}

const COMPARING = randomBytes(32)
const digest = (text: string): Buffer => createHmac('sha256', COMPARING).update(text).digest()

/** In a time that tells nothing, not even how long the password is. */
const isSamePassword = (given: string, right: string): boolean => timingSafeEqual(digest(given), digest(right))
