import type { MaybePromise } from './maybe-promise.js'

// Long-running work in slices, so that the event loop can serve other clients in between.

/** Short enough not to be noticed, long enough for ordinary calls. */
const SLICE_MS = 10
/** For work that clients can cause again and again. */
export const SHORT_SLICE_MS = 4
/** Reading the clock for each small step would cost more than the steps themselves. */
const STEPS_PER_CLOCK_READ = 64

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** The time that a task may run before it has to yield to the event loop. */
export class TimeSlice {
  readonly #nowMs: () => number
  readonly #sliceMs: number
  #startedAt: number
  #steps = 0

  /** `nowMs` is a monotonic clock. */
  constructor(nowMs: () => number, sliceMs = SLICE_MS) {
    this.#nowMs = nowMs
    this.#sliceMs = sliceMs
    this.#startedAt = nowMs()
  }

  get isOver(): boolean {
    return this.isOverAt(this.#nowMs())
  }

  /** For callers that have already read the clock. */
  isOverAt(nowMs: number): boolean {
    return nowMs - this.#startedAt >= this.#sliceMs
  }

  /** Counts a step of about a microsecond, and checks the clock only now and then. */
  get isOverAfterStep(): boolean {
    this.#steps += 1
    return this.#steps % STEPS_PER_CLOCK_READ === 0 && this.isOver
  }

  /** Resolves in the next turn of the event loop and starts a new slice. */
  async next(): Promise<void> {
    await nextTurn()
    this.#startedAt = this.#nowMs()
  }
}

/** If the entries come from a map, it may change while they are processed. */
export const forEachInSlices = async <Entry>(
  entries: Iterable<Entry>,
  work: (entry: Entry) => void,
  slice: TimeSlice
): Promise<void> => {
  for (const entry of entries) {
    work(entry)
    if (slice.isOverAfterStep) await slice.next()
  }
}

/** The entries that pass a test, in order: at once if that takes no longer than a slice. */
export const filterInSlices = <Entry>(
  entries: readonly Entry[],
  test: (entry: Entry) => boolean,
  slice: TimeSlice
): MaybePromise<readonly Entry[]> => {
  const passed: Entry[] = []
  const remaining = entries.values()
  const run = (): MaybePromise<readonly Entry[]> => {
    for (const entry of remaining) {
      if (test(entry)) passed.push(entry)
      if (slice.isOverAfterStep) return slice.next().then(run)
    }
    return passed
  }
  return run()
}

/** Parts are joined at this size: V8 flattens a long concatenated string in one blocking step. */
const ENTRIES_PER_PART = 1000

/** The comma-separated texts of all entries; null if they are longer than `maxLength`, with a comma for each. */
export const joinInSlices = async <Entry>(
  entries: Iterable<Entry>,
  text: (entry: Entry) => string,
  slice: TimeSlice,
  maxLength = Number.POSITIVE_INFINITY
): Promise<string | null> => {
  const parts: string[] = []
  let part: string[] = []
  let length = 0
  for (const entry of entries) {
    const next = text(entry)
    length += next.length + 1
    if (length > maxLength) return null
    part.push(next)
    if (part.length === ENTRIES_PER_PART) {
      parts.push(part.join(','))
      part = []
    }
    if (slice.isOverAfterStep) await slice.next()
  }
  if (part.length > 0) parts.push(part.join(','))
  return parts.join(',')
}

/** Total time per turn of the event loop for clients whose commands were interrupted. */
const TURN_MS = 5

/** Interrupted tasks, resumed in order for a few milliseconds per turn of the event loop. Tasks must not throw. */
export class TurnQueue {
  readonly #atEndOfTurn: (task: () => void) => void
  readonly #monotonicMs: () => number
  readonly #tasks: (() => void)[] = []

  constructor(atEndOfTurn: (task: () => void) => void, monotonicMs: () => number) {
    this.#atEndOfTurn = atEndOfTurn
    this.#monotonicMs = monotonicMs
  }

  push(task: () => void): void {
    if (this.#tasks.push(task) === 1) this.#atEndOfTurn(this.#run)
  }

  readonly #run = (): void => {
    const startedAt = this.#monotonicMs()
    // Tasks that are added meanwhile run in the next turn; a task may add itself again.
    let left = this.#tasks.length
    do {
      this.#tasks[0]?.()
      // Removed after it ran: an empty queue would be scheduled a second time by `push`.
      this.#tasks.shift()
      left -= 1
    } while (left > 0 && this.#monotonicMs() - startedAt < TURN_MS)
    if (this.#tasks.length > 0) this.#atEndOfTurn(this.#run)
  }
}
