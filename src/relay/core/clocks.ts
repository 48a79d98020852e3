/**
 * The system's clock may be set at any time, by hours and in both directions. Only points in time that other machines or
 * people see are taken from it; every interval is measured with the monotonic clock.
 */
export interface Clocks {
  /** Wall-clock time in milliseconds since 1970: for the times in tokens and publications, and those shown to people. */
  readonly nowMs: () => number
  /** Only goes forward, from an arbitrary start: for every interval. */
  readonly monotonicMs: () => number
}

/** A reading of both clocks. */
export interface Moment {
  readonly wallMs: number
  readonly monotonicMs: number
}

export const readClocks = (clocks: Clocks): Moment => ({ wallMs: clocks.nowMs(), monotonicMs: clocks.monotonicMs() })

/** Converts a monotonic time to wall-clock time, by the present setting of the system clock. */
export const wallTimeOf = (monotonicMs: number, clocks: Clocks): number =>
  Math.round(clocks.nowMs() - (clocks.monotonicMs() - monotonicMs))

/** `ttl` is a uint32 in the protocol. */
const MAX_TTL_SECONDS = 0xffff_ffff

/** The `ttl` that a client receives: whole seconds, at least 1, so that 0 stays free for "never". */
export const ttlSeconds = (expiresAtMs: number, nowMs: number): number =>
  Math.min(Math.max(Math.ceil((expiresAtMs - nowMs) / 1000), 1), MAX_TTL_SECONDS)

export const NEVER: Moment = { wallMs: Number.POSITIVE_INFINITY, monotonicMs: Number.POSITIVE_INFINITY }

/** An expiry that is given in wall-clock time, on both clocks; 0 is never. */
export const expiryAt = (wallMs: number, clocks: Clocks): Moment =>
  wallMs > 0 ? { wallMs, monotonicMs: clocks.monotonicMs() + wallMs - clocks.nowMs() } : NEVER

/**
 * An expiry has come when either clock reaches it. Setting the system's clock back does not lengthen the `ttl` that the
 * client received, and setting it forward ends what has expired by then, also after the machine was suspended.
 */
export const hasExpired = (expiry: Moment, graceMs: number, now: Moment): boolean =>
  now.wallMs >= expiry.wallMs + graceMs || now.monotonicMs >= expiry.monotonicMs + graceMs
