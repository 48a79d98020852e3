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

/** Whole seconds, at least 1, so that 0 stays free for "never". */
const ttlSeconds = (expiresAtMs: number, nowMs: number): number =>
  Math.min(Math.max(Math.ceil((expiresAtMs - nowMs) / 1000), 1), MAX_TTL_SECONDS)

/** When a connection or a subscription expires, on both clocks. */
export interface Expiry extends Moment {
  /** The backend is asked then. Otherwise the client has to refresh it in time. */
  readonly isRefreshedByBackend: boolean
}

export const NEVER: Expiry = {
  wallMs: Number.POSITIVE_INFINITY,
  monotonicMs: Number.POSITIVE_INFINITY,
  isRefreshedByBackend: false
}

/** An expiry that is given in wall-clock time; 0 is never. */
export const expiryAt = (wallMs: number, clocks: Clocks, isRefreshedByBackend: boolean): Expiry =>
  wallMs > 0 ? { wallMs, monotonicMs: clocks.monotonicMs() + wallMs - clocks.nowMs(), isRefreshedByBackend } : NEVER

/** An option may have changed since the client was told that it has to refresh; it applies to what has no expiry. */
export const refreshesByBackend = (expiry: Expiry, hasProxy: boolean): boolean =>
  expiry === NEVER ? hasProxy : expiry.isRefreshedByBackend

/** Whether an expiry in seconds since 1970 is in the past; 0 is never. */
export const isPast = (expiresAt: number, { nowMs }: Pick<Clocks, 'nowMs'>): boolean =>
  expiresAt > 0 && expiresAt * 1000 <= nowMs()

/** The `ttl` in a reply; 0 if the client does not have to refresh anything. */
export const ttlOf = ({ wallMs, isRefreshedByBackend }: Expiry, { nowMs }: Pick<Clocks, 'nowMs'>): number =>
  isRefreshedByBackend || wallMs === Number.POSITIVE_INFINITY ? 0 : ttlSeconds(wallMs, nowMs())

/**
 * An expiry has come when either clock reaches it. Setting the system's clock back does not lengthen the `ttl` that the
 * client received, and setting it forward ends what has expired by then, also after the machine was suspended.
 */
export const hasExpired = (expiry: Moment, graceMs: number, now: Moment): boolean =>
  now.wallMs >= expiry.wallMs + graceMs || now.monotonicMs >= expiry.monotonicMs + graceMs
