/** Things that several parts of a page want at the same time: the first one to want it begins, the last one ends. */
export class Counted {
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

  /** The answer takes it back, once. */
  want(name: string): () => void {
    const count = this.#counts.get(name) ?? 0
    this.#counts.set(name, count + 1)
    if (count === 0) this.#begin(name)

    let isWanted = true
    return () => {
      if (!isWanted) return
      isWanted = false
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
