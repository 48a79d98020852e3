import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Type } from '@sinclair/typebox'
import { BoundedMap } from '../../shared/bounded-map.js'
import type { Attempt } from './admin-surveys.js'
import { type AdminCall, networkOf, setSessionCookie } from './guard.js'
import type { SessionKeys, Sessions } from './sessions.js'

const BODY = Type.Object({ password: Type.String({ maxLength: 1024 }) }, { additionalProperties: false })
const MAX_BODY_BYTES = 8192

export interface SignInDependencies {
  readonly sessions: Sessions
  readonly keys: () => SessionKeys
  readonly password: () => string
  readonly limiter: SignInLimiter
  /** A trusted proxy reports that the browser uses https. */
  readonly isForwardedHttps: (request: IncomingMessage) => boolean
  /** Sends the attempt to the other nodes, which count it, too. */
  readonly announce: (attempt: Attempt) => void
  readonly log: { info(facts: object, message: string): void; warn(facts: object, message: string): void }
}

export const signIn = (dependencies: SignInDependencies) => {
  const { sessions, keys, password, limiter, isForwardedHttps, announce, log } = dependencies

  const count = (attempt: Attempt): void => {
    limiter.count(attempt)
    announce(attempt)
  }

  const rejectIfLimited = (call: AdminCall): boolean => {
    const waitMs = limiter.waitMs(networkOf(call.address))
    if (waitMs === 0) return false
    const seconds = Math.ceil(waitMs / 1000)
    call.reject(429, 'TOO_MANY_ATTEMPTS', `Too many attempts: try again in ${Math.ceil(seconds / 60)} minutes.`, [
      'Retry-After',
      String(seconds)
    ])
    return true
  }

  return async (call: AdminCall): Promise<void> => {
    // The body of a locked-out client is not read.
    if (rejectIfLimited(call)) return
    await call.body(BODY, MAX_BODY_BYTES, (body) => {
      // Checked again: other attempts may have failed meanwhile. There is no await between this check and the count.
      if (rejectIfLimited(call)) return
      const { address, request } = call
      const network = networkOf(address)
      if (!isSamePassword(body.password, password())) {
        count({ network, isSuccessful: false })
        log.warn({ ip: address }, 'admin sign-in rejected')
        call.reject(401, 'WRONG_PASSWORD', 'The password is wrong.')
        return
      }
      count({ network, isSuccessful: true })
      log.info({ ip: address }, 'admin sign-in')
      // An https origin means that the page was loaded over https, even if no proxy reports it.
      const isSecure = isForwardedHttps(request) || (request.headers.origin ?? '').startsWith('https:')
      const session = sessions.start(isSecure)
      call.cookie = setSessionCookie(keys().sign(session), isSecure)
      call.noContent()
    })
  }
}

const COMPARISON_KEY = randomBytes(32)
const digest = (text: string): Buffer => createHmac('sha256', COMPARISON_KEY).update(text).digest()

/** Compares in constant time, independent of the length of the password. */
const isSamePassword = (given: string, expected: string): boolean => timingSafeEqual(digest(given), digest(expected))

const WINDOW_MS = 15 * 60 * 1000
const MAX_FAILURES_PER_ADDRESS = 5
const MAX_FAILURES = 100
/** Number of remembered addresses with a successful sign-in. */
const MIN_TRUSTED = 100

/**
 * Limits failed sign-in attempts per address and overall. The overall limit does not apply to addresses with an earlier
 * successful sign-in, so that attackers cannot lock operators out.
 */
export class SignInLimiter {
  readonly #monotonicMs: () => number
  /** In chronological order. The limits also bound its length. */
  #failures: { readonly address: string; readonly at: number }[] = []
  readonly #trusted = new BoundedMap<string, true>(MIN_TRUSTED)

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  /** Time until the address may try again; 0 if it may try now. */
  waitMs(address: string): number {
    const nowMs = this.#monotonicMs()
    this.#failures = this.#failures.filter(({ at }) => nowMs - at < WINDOW_MS)
    const own = this.#failures.filter((failure) => failure.address === address)
    const ownWait = waitOf(own, MAX_FAILURES_PER_ADDRESS, nowMs)
    if (ownWait > 0 || this.#trusted.has(address)) return ownWait
    return waitOf(
      this.#failures.filter((failure) => !this.#trusted.has(failure.address)),
      MAX_FAILURES,
      nowMs
    )
  }

  /** Counts an attempt at this or another node. */
  count({ network, isSuccessful }: Attempt): void {
    if (isSuccessful) this.#succeeded(network)
    else if (this.waitMs(network) === 0) this.#failures.push({ address: network, at: this.#monotonicMs() })
  }

  #succeeded(address: string): void {
    this.#failures = this.#failures.filter((failure) => failure.address !== address)
    this.#trusted.set(address, true)
  }
}

/** Time until the oldest of the last `limit` failures leaves the window. */
const waitOf = (failures: readonly { readonly at: number }[], limit: number, nowMs: number): number => {
  const oldest = failures.at(-limit)
  return oldest === undefined ? 0 : oldest.at + WINDOW_MS - nowMs
}
