// Long work in pieces: between two of them the event loop serves everybody else.

/** Short enough that nobody notices, long enough that ordinary calls fit into one. */
const SLICE_MS = 10
/** Reading the clock for each of many small steps would cost more than the steps. */
const STEPS_PER_LOOK = 64

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** The time that one piece of work may take before it has to let others run. */
export class TimeSlice {
  readonly #nowMs: () => number
  #startedAt: number
  #steps = 0

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
    this.#startedAt = nowMs()
  }

  get isOver(): boolean {
    return this.isOverAt(this.#nowMs())
  }

  /** For whoever has read the clock. */
  isOverAt(nowMs: number): boolean {
    return nowMs - this.#startedAt >= SLICE_MS
  }

  /** As `isOver`, for steps of about a microsecond. */
  get isOverAfterStep(): boolean {
    this.#steps += 1
    return this.#steps % STEPS_PER_LOOK === 0 && this.isOver
  }

  /** Settles when everybody else has had a turn. */
  async next(): Promise<void> {
    await nextTurn()
    this.#startedAt = this.#nowMs()
  }
}

/** Entries may be added and removed meanwhile where the list is a map. */
export const forEachInSlices = async <Entry>(
  entries: Iterable<Entry>,
  work: (entry: Entry) => void,
  slice = new TimeSlice()
): Promise<void> => {
  for (const entry of entries) {
    work(entry)
    if (slice.isOverAfterStep) await slice.next()
  }
}

/** Joined so often, because a long text that was made by appending is one long chain until somebody reads it. */
const ENTRIES_PER_PART = 1000

/** The texts of all entries with commas in between, or null once they are longer than `maxLength`. */
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

/** What clients whose commands were interrupted get of one turn of the event loop, all of them together. */
const TURN_MS = 5

/**
 * Work that was interrupted so that other clients get their turn. It goes on in the order in which it was put here, for a
 * few milliseconds in each turn of the event loop. Tasks must not throw.
 */
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
    // What is put here meanwhile belongs to the next turn: a task may put itself here again.
    let left = this.#tasks.length
    do {
      this.#tasks[0]?.()
      // Taken out afterwards, so that the queue is not empty meanwhile and is scheduled once.
      this.#tasks.shift()
      left -= 1
    } while (left > 0 && this.#monotonicMs() - startedAt < TURN_MS)
    if (this.#tasks.length > 0) this.#atEndOfTurn(this.#run)
  }
}
