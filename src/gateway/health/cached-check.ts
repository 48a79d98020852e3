/** The result of a check. The reason is one of a closed set, so that no text of the checked service is published. */
export type HealthState<Reason extends string> =
  | { readonly status: 'up'; readonly latencyMs: number }
  | { readonly status: 'down'; readonly reason: Reason }

export interface CachedCheckOptions<Reason extends string> {
  /** Rejects if the service is down. */
  readonly probe: () => Promise<void>
  readonly reasonOf: (error: unknown) => Reason
  readonly now: () => number
}

const CACHE_MS = 1_000

/** A check that never rejects. It probes at most once per second, and concurrent callers share one probe. */
export const cachedCheck = <Reason extends string>({
  probe,
  reasonOf,
  now
}: CachedCheckOptions<Reason>): (() => Promise<HealthState<Reason>>) => {
  let inFlight: Promise<HealthState<Reason>> | null = null
  let cached: { readonly state: HealthState<Reason>; readonly until: number } | null = null

  const check = async (): Promise<HealthState<Reason>> => {
    const startedAt = now()
    try {
      await probe()
      return { status: 'up', latencyMs: Math.round(now() - startedAt) }
    } catch (error) {
      return { status: 'down', reason: reasonOf(error) }
    }
  }

  return async () => {
    if (cached !== null && now() < cached.until) return cached.state
    inFlight ??= check().then((state) => {
      cached = { state, until: now() + CACHE_MS }
      inFlight = null
      return state
    })
    return inFlight
  }
}
