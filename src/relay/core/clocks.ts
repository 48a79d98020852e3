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

/** What the system's clock, as it is set now, would have shown then. */
export const wallTimeOf = (monotonicMs: number, clocks: Clocks): number =>
  Math.round(clocks.nowMs() - (clocks.monotonicMs() - monotonicMs))
