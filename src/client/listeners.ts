/** The listeners of one event. */
export class Listeners<Event> {
  readonly #listeners = new Set<(event: Event) => void>()

  /** Returns a function that removes the listener. */
  add(listener: (event: Event) => void): () => void {
    // The same function may be added twice.
    const entry = (event: Event): void => listener(event)
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** An error in one listener does not affect the others; it is reported as an uncaught error of the page. */
  emit(event: Event): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event)
      } catch (error) {
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
}
