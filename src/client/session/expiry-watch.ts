import type { Clock } from '../clock.js'
import type { Session } from './session.js'

export interface ExpiryOptions {
  readonly session: Session
  readonly clock: Clock
  /** How long before the end `onExpiring` is called. */
  readonly warnBeforeMs?: number
  /** Once per session, with what is left of it. */
  readonly onExpiring?: (leftMs: number) => void
  /** Once per session, when nobody is signed in any more. Not after signing out. */
  readonly onExpired?: () => void
}

export interface ExpiryWatch {
  /** The gateway says that the session is over: it knows, whatever the page's clock and cookies say. */
  endNow(): void
  stop(): void
}

const WARN_BEFORE_MS = 5 * 60_000
/** A computer that sleeps stops its timers, so the clock is looked at now and then. */
const LOOK_EVERY_MS = 30_000
/** Cookies live for whole seconds: the browser may drop them this much before the session ends. */
const COOKIE_GRAIN_MS = 2000

export const watchExpiry = ({
  session,
  clock,
  warnBeforeMs = WARN_BEFORE_MS,
  onExpiring = () => undefined,
  onExpired = () => undefined
}: ExpiryOptions): ExpiryWatch => {
  /** The session that is watched, by its end; null while there is none. */
  let endMs: number | null = null
  let hasWarned = false
  let callOff = (): void => undefined

  const end = (): void => {
    endMs = null
    callOff()
    session.end()
    onExpired()
  }

  const look = (): void => {
    // Another tab may have signed in anew, or out: then `follow` is told.
    session.refresh()
    decide()
  }

  const decide = (): void => {
    callOff()
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
    callOff = clock.after(Math.min(nextMs, LOOK_EVERY_MS), look)
  }

  const follow = (): void => {
    const { expiresAtMs } = session.state
    if (expiresAtMs === endMs) return
    if (expiresAtMs === null && endMs !== null && endMs - clock.now() <= COOKIE_GRAIN_MS) {
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
    endNow: () => {
      if (endMs !== null) end()
    },
    stop: () => {
      stopFollowing()
      callOff()
    }
  }
}
