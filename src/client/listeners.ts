/** Those who want to hear of one kind of event. */
export class Listeners<Event> {
  readonly #listeners = new Set<(event: Event) => void>()

  /** The answer takes the listener off again. */
  add(listener: (event: Event) => void): () => void {
    // A function may be handed over twice, and each time counts.
    const entry = (event: Event): void => listener(event)
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** A listener that fails keeps nobody else from hearing, and is reported as any fault of a page is. */
  tell(event: Event): void {
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
