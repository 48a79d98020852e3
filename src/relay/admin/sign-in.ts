import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Type } from '@sinclair/typebox'
import { type AdminCall, networkOf, setSessionCookie } from './guard.js'
import type { SessionKeys, Sessions } from './sessions.js'

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

export const WINDOW_MS = 15 * 60 * 1000
export const PER_ADDRESS = 5
export const OVERALL = 100
/** So many addresses are remembered as those of operators. */
const MAX_TRUSTED = 100

/** One to sign in. */
export interface Attempt {
  /** Where it came from. */
  readonly network: string
  readonly isRight: boolean
}

/**
 * Failed attempts to sign in. Where strangers have used up what all addresses have together, those from which somebody has
 * signed in before still have their own: nobody can lock the operators out from elsewhere.
 */
export class Attempts {
  readonly #monotonicMs: () => number
  /** In order. No longer than the limits allow, so there is nothing that a stranger could fill. */
  #failures: { readonly address: string; readonly at: number }[] = []
  readonly #trusted = new Set<string>()

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Milliseconds to wait; 0 for an address that may try now. */
  waitMs(address: string): number {
    const nowMs = this.#monotonicMs()
    this.#failures = this.#failures.filter(({ at }) => nowMs - at < WINDOW_MS)
    const own = this.#failures.filter((failure) => failure.address === address)
    const ownWait = waitOf(own, PER_ADDRESS, nowMs)
    if (ownWait > 0 || this.#trusted.has(address)) return ownWait
    return waitOf(
      this.#failures.filter((failure) => !this.#trusted.has(failure.address)),
      OVERALL,
      nowMs
    )
  }

  /** Made at this node or another one. */
  count({ network, isRight }: Attempt): void {
    if (isRight) this.#succeeded(network)
    else if (this.waitMs(network) === 0) this.#failures.push({ address: network, at: this.#monotonicMs() })
  }

  #succeeded(address: string): void {
    this.#failures = this.#failures.filter((failure) => failure.address !== address)
    this.#trusted.delete(address)
    this.#trusted.add(address)
    if (this.#trusted.size > MAX_TRUSTED) this.#trusted.delete(this.#trusted.values().next().value as string)
  }
}

/** Until the oldest of the last `limit` failures has run out. */
const waitOf = (failures: readonly { readonly at: number }[], limit: number, nowMs: number): number => {
  const oldest = failures.at(-limit)
  return oldest === undefined ? 0 : oldest.at + WINDOW_MS - nowMs
}
