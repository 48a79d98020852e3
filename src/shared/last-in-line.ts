/** Lets tasks that share a name run one after the other, in the order in which they came; others do not wait. */
export class LastInLine {
  readonly #last = new Map<string, Promise<void>>()

  /** The task must not reject. */
  wait(names: readonly string[], task: () => Promise<void>): Promise<void> {
    const before = names.map((name) => this.#last.get(name)).filter((each) => each !== undefined)
    const done = before.length === 0 ? task() : Promise.all(before).then(task)
    for (const name of names) this.#last.set(name, done)
    void done.then(() => this.#forget(names, done))
    return done
  }

  #forget(names: readonly string[], done: Promise<void>): void {
    for (const name of names) if (this.#last.get(name) === done) this.#last.delete(name)
  }
}
