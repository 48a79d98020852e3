/** The steps of a start with their times: printed, and shown by the page that answers before the gateway runs. */
export class Progress {
  readonly #print: (line: string) => void
  readonly #nowMs: () => number
  readonly #steps: { readonly name: string; readonly startMs: number; endMs: number | null }[] = []

  constructor(print: (line: string) => void, nowMs: () => number = () => performance.now()) {
    this.#print = print
    this.#nowMs = nowMs
  }

  /** Runs a step. A step that fails is not marked as done. */
  async step<T>(name: string, work: () => Promise<T>, detail = ''): Promise<T> {
    const step = { name, startMs: this.#nowMs(), endMs: null as number | null }
    this.#steps.push(step)
    this.#print(`  ${name} …${detail && ` ${detail}`}`)
    const result = await work()
    step.endMs = this.#nowMs()
    this.#print(`  ${name}: done after ${secondsText(step.endMs - step.startMs)}`)
    return result
  }

  /** One line per step. */
  lines(): string[] {
    return this.#steps.map(({ name, startMs, endMs }) =>
      endMs === null
        ? `${name} … ${secondsText(this.#nowMs() - startMs)}`
        : `${name}: done after ${secondsText(endMs - startMs)}`
    )
  }
}

export const secondsText = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
