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
