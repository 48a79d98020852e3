/** The other nodes that have been heard of lately. One that says nothing for the time of its lease has left. */
export class Neighbours {
  readonly #leaseMs: number
  readonly #nowMs: () => number
  readonly #heardAt = new Map<string, number>()

  constructor(leaseMs: number, nowMs: () => number) {
    this.#leaseMs = leaseMs
    this.#nowMs = nowMs
  }

  get nodes(): readonly string[] {
    const since = this.#nowMs() - this.#leaseMs
    for (const [node, at] of this.#heardAt) if (at < since) this.#heardAt.delete(node)
    return [...this.#heardAt.keys()]
  }

  heard(node: string): void {
    this.#heardAt.set(node, this.#nowMs())
  }

  left(node: string): void {
    this.#heardAt.delete(node)
  }
}
