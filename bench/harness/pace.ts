export interface Pace {
  readonly perSecond: number
  /** Ends after so many calls. */
  readonly calls?: number
}

/**
 * Calls `send` at a fixed rate with the intended time of each call. A late timer catches up, so a stalled program does not
 * lower the rate, and latencies from the intended time include the stall. Returns a function that stops it.
 */
export const pace = (
  { perSecond, calls = Number.POSITIVE_INFINITY }: Pace,
  send: (intendedAt: number) => void
): (() => void) => {
  const began = performance.now()
  const intendedAt = (call: number): number => began + (call * 1000) / perSecond
  let sent = 0
  let timer: NodeJS.Timeout | undefined
  const sendDue = (): void => {
    for (const now = performance.now(); sent < calls && intendedAt(sent) <= now; sent++) send(intendedAt(sent))
    if (sent < calls) timer = setTimeout(sendDue, Math.max(0, intendedAt(sent) - performance.now()))
  }
  sendDue()
  return () => clearTimeout(timer)
}
