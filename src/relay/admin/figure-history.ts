import type { Log } from '../../shared/log.js'
import type { AdminSurveys } from './admin-surveys.js'
import type { FigureSample } from './contract.js'
import { FigureSampler } from './node-figures.js'

const HISTORY_MS = 15 * 60 * 1000
const PERIOD_MS = 5000
/** The clocks of other machines may be ahead by this much. */
const MAX_AHEAD_MS = 60_000

export interface FigureHistoryDependencies {
  readonly surveys: AdminSurveys
  /** False while there is no operators' page. */
  readonly isEnabled: () => boolean
  readonly nowMs: () => number
  readonly log: Log
}

/**
 * The figures of the last 15 minutes, recorded every five seconds whether a page is open or not. Every node records those of
 * all nodes, so that the figures of a node are not lost when it exits.
 */
export class FigureHistory {
  readonly #dependencies: FigureHistoryDependencies
  #sampler = new FigureSampler()
  #samples: readonly FigureSample[] = []
  #timer: NodeJS.Timeout | null = null

  constructor(dependencies: FigureHistoryDependencies) {
    this.#dependencies = dependencies
  }

  /** Oldest first. Samples are ahead after the system clock was set back. */
  get samples(): readonly FigureSample[] {
    const now = this.#dependencies.nowMs()
    return this.#samples.filter(({ time }) => now - time < HISTORY_MS && time - now <= MAX_AHEAD_MS)
  }

  /** Time of the oldest sample; null without samples. */
  get oldest(): number | null {
    return this.samples[0]?.time ?? null
  }

  /** Adds the samples that another node recorded before this one. */
  addEarlier(samples: readonly FigureSample[]): void {
    const oldest = this.oldest ?? Number.POSITIVE_INFINITY
    this.#samples = [...samples.filter(({ time }) => time < oldest), ...this.samples]
  }

  start(): void {
    void this.record()
    // All nodes record at the same times, so that each computes its counts once for all of them.
    const untilNext = PERIOD_MS - (this.#dependencies.nowMs() % PERIOD_MS)
    // A timer that fired early would otherwise fire twice.
    const delayMs = untilNext < PERIOD_MS / 2 ? untilNext + PERIOD_MS : untilNext
    this.#timer = setTimeout(() => this.start(), delayMs).unref()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  /** The first call only reads the counts, because rates need two. Never rejects. */
  async record(): Promise<void> {
    const { surveys, isEnabled, nowMs, log } = this.#dependencies
    if (!isEnabled()) {
      this.#sampler = new FigureSampler()
      return
    }
    try {
      // Timers fire a little early or late.
      const time = Math.round(nowMs() / PERIOD_MS) * PERIOD_MS
      const results = await surveys.survey('adminCounts', null)
      const nodes = this.#sampler.figures(results.map(({ node, result }) => [node, result]))
      if (nodes.length > 0) this.#samples = [...this.samples, { time, nodes }]
    } catch (error) {
      log.error({ err: error }, 'admin figures not recorded')
    }
  }
}
