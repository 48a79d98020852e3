import { setTimeout } from 'node:timers/promises'
import { inspect } from 'node:util'

const POLL_MS = 20
/** Generous: on a busy machine a test may be slow, but a condition that can never hold must still be reported. */
const DEADLINE_MS = 180_000

const EXPIRED = Symbol('expired')

export interface EventuallyOptions {
  /** What the test waits for, for the error message. By default the source text of `condition`. */
  readonly label?: string
  readonly deadlineMs?: number
}

/**
 * Polls until `condition` returns something truthy, and resolves with that. A condition that throws counts as not yet
 * true. After the deadline the error names the condition and its last value or error.
 */
export const eventually = async <T>(
  condition: () => Promise<T> | T,
  { label = condition.toString(), deadlineMs = DEADLINE_MS }: EventuallyOptions = {}
): Promise<NonNullable<T>> => {
  const deadline = new AbortController()
  const expired = setTimeout(deadlineMs, EXPIRED, { signal: deadline.signal })
  expired.catch(() => undefined)
  let last = 'the condition did not return'
  let cause: unknown
  try {
    for (;;) {
      try {
        const value = await Promise.race([condition(), expired])
        if (value === EXPIRED) break
        if (value) return value
        last = `last value: ${inspect(value)}`
        cause = undefined
      } catch (error) {
        last = `last error: ${error instanceof Error ? error.message : inspect(error)}`
        cause = error
      }
      if ((await Promise.race([setTimeout(POLL_MS), expired])) === EXPIRED) break
    }
  } finally {
    deadline.abort()
  }
  throw new Error(`gave up after ${deadlineMs} ms waiting for: ${label} (${last})`, { cause })
}
