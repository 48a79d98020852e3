import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 20
/** Nobody asks any more. */
const UNUSED_MS = 5000

/** How long the event loop kept others waiting at worst. Measured only while somebody asks every now and then. */
export class LoopDelay {
  #histogram: IntervalHistogram | null = null
  #stopping: NodeJS.Timeout | null = null

  get isMeasuring(): boolean {
    return this.#histogram !== null
  }

  /** In milliseconds, since it was last asked. */
  worst(): number {
    if (this.#histogram === null) {
      this.#histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
      this.#histogram.enable()
      this.#stopping = setTimeout(() => this.stop(), UNUSED_MS).unref()
      return 0
    }
    this.#stopping?.refresh()
    const { count, max } = this.#histogram
    this.#histogram.reset()
    // What it measures contains the time between two looks.
    return count === 0 ? 0 : Math.max(0, max / 1e6 - RESOLUTION_MS)
  }

  stop(): void {
    this.#histogram?.disable()
    this.#histogram = null
    if (this.#stopping !== null) clearTimeout(this.#stopping)
    this.#stopping = null
  }
}
