import type { Clock } from '../clock.js'
import type { Session } from './session.js'

export interface ExpiryOptions {
  readonly session: Session
  readonly clock: Clock
  /** How long before the expiry `onExpiring` is called. */
  readonly warnBeforeMs?: number
  /** Called once per session with the remaining time. */
  readonly onExpiring?: (leftMs: number) => void
  /** Called once per session when it has expired; not after a sign-out. */
  readonly onExpired?: () => void
}

export interface ExpiryWatch {
  /** For a session that the gateway reports as expired, regardless of the page's clock and cookies. */
  expireNow(): void
  stop(): void
}

const WARN_BEFORE_MS = 5 * 60_000
/** Timers stop while a computer sleeps, so the clock is checked regularly. */
const CHECK_EVERY_MS = 30_000
/** Cookie lifetimes are whole seconds: a browser may drop cookies this long before the session expires. */
const COOKIE_ROUNDING_MS = 2000

export const watchExpiry = ({
  session,
  clock,
  warnBeforeMs = WARN_BEFORE_MS,
  onExpiring = () => undefined,
  onExpired = () => undefined
}: ExpiryOptions): ExpiryWatch => {
  /** Expiry of the current session; null while there is none. */
  let endMs: number | null = null
  let hasWarned = false
  let cancel = (): void => undefined

  const end = (): void => {
    endMs = null
    cancel()
    session.end()
    onExpired()
  }

  const check = (): void => {
    // Another tab may have signed in or out; `follow` then runs as a change listener.
    session.refresh()
    decide()
  }

  const decide = (): void => {
    cancel()
    if (endMs === null) return
    const leftMs = endMs - clock.now()
    if (leftMs <= 0) {
      end()
      return
    }
    if (leftMs <= warnBeforeMs && !hasWarned) {
      hasWarned = true
      onExpiring(leftMs)
    }
    const nextMs = hasWarned ? leftMs : leftMs - warnBeforeMs
    cancel = clock.after(Math.min(nextMs, CHECK_EVERY_MS), check)
  }

  const follow = (): void => {
    const { expiresAtMs } = session.state
    if (expiresAtMs === endMs) return
    if (expiresAtMs === null && endMs !== null && endMs - clock.now() <= COOKIE_ROUNDING_MS) {
      end()
      return
    }
    endMs = expiresAtMs
    hasWarned = false
    decide()
  }

  const stopFollowing = session.onChange(follow)
  follow()
  return {
    expireNow: () => {
      if (endMs !== null) end()
    },
    stop: () => {
      stopFollowing()
      cancel()
    }
  }
}
