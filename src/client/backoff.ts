export interface BackoffOptions {
  readonly minMs?: number
  readonly maxMs?: number
  readonly random?: () => number
}

const MIN_MS = 500
const MAX_MS = 20_000

/**
 * The delay before the next attempt after this number of consecutive failures, at least one. It doubles with every failure
 * and has jitter, so that clients do not all retry at once after an outage.
 */
export const backoffMs = (
  failures: number,
  { minMs = MIN_MS, maxMs = MAX_MS, random = Math.random }: BackoffOptions = {}
): number => {
  const ceiling = Math.min(maxMs, minMs * 2 ** Math.max(failures - 1, 0))
  return ceiling / 2 + (ceiling / 2) * random()
}
