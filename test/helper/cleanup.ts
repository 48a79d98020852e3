import type { Teardown } from './child.js'

/** Teardown of a program that is not a test: runs the steps in reverse order. */
export class Cleanup implements Teardown {
  readonly #steps: (() => unknown)[] = []

  readonly teardown = (step: () => unknown): void => {
    this.#steps.push(step)
  }

  async run(): Promise<void> {
    for (const step of this.#steps.reverse()) await step()
  }
}
