/** What a check found out. The reason is one word of a closed set: nothing that was asked can put text of its own in it. */
export type HealthState<Reason extends string> =
  | { readonly status: 'up'; readonly latencyMs: number }
  | { readonly status: 'down'; readonly reason: Reason }

export interface KeptCheckOptions<Reason extends string> {
  /** Resolves when all is well; its error says what is not. */
  readonly ask: () => Promise<void>
  readonly reasonOf: (error: unknown) => Reason
  readonly now: () => number
}

const KEPT_MS = 1_000

/** A check that never throws, and that asks once at a time and once a second at most, however many want to know. */
export const keptCheck = <Reason extends string>({
  ask,
  reasonOf,
  now
}: KeptCheckOptions<Reason>): (() => Promise<HealthState<Reason>>) => {
  let inFlight: Promise<HealthState<Reason>> | null = null
  let kept: { readonly state: HealthState<Reason>; readonly until: number } | null = null

  const check = async (): Promise<HealthState<Reason>> => {
    const startedAt = now()
    try {
      await ask()
      return { status: 'up', latencyMs: Math.round(now() - startedAt) }
    } catch (error) {
      return { status: 'down', reason: reasonOf(error) }
    }
  }

  return async () => {
    if (kept !== null && now() < kept.until) return kept.state
    inFlight ??= check().then((state) => {
      kept = { state, until: now() + KEPT_MS }
      inFlight = null
      return state
    })
    return inFlight
  }
}
