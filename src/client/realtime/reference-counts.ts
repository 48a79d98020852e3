/** Reference counts by name: calls `begin` for the first reference and `end` after the last one is released. */
export class ReferenceCounts {
  readonly #counts = new Map<string, number>()
  readonly #begin: (name: string) => void
  readonly #end: (name: string) => void

  constructor(begin: (name: string) => void, end: (name: string) => void) {
    this.#begin = begin
    this.#end = end
  }

  get names(): readonly string[] {
    return [...this.#counts.keys()]
  }

  /** Returns a function that releases the reference. */
  acquire(name: string): () => void {
    const count = this.#counts.get(name) ?? 0
    this.#counts.set(name, count + 1)
    if (count === 0) this.#begin(name)

    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#release(name)
    }
  }

  #release(name: string): void {
    const count = (this.#counts.get(name) ?? 0) - 1
    if (count > 0) {
      this.#counts.set(name, count)
      return
    }
    this.#counts.delete(name)
    this.#end(name)
  }
}
