import type { FigureSample, NodeFigures } from './contract.js'
import { figuresBetween, type NodeCounts } from './node-figures.js'

const HISTORY_MS = 15 * 60 * 1000
const PERIOD_MS = 5000
/** The clocks of other machines may be ahead by this much. */
const MAX_AHEAD_MS = 60_000

/** The figures that a node has recorded for one period. */
export interface RecordedFigures {
  /** The end of the period, the same at all nodes: a multiple of `PERIOD_MS`, in milliseconds since 1970. */
  readonly time: number
  readonly figures: NodeFigures
}

/** The recorded figures of all nodes in the last 15 minutes. Every node keeps those of all, so that a crash loses none. */
export class FigureHistory {
  readonly #byTime = new Map<number, Map<string, NodeFigures>>()

  add({ time, figures }: RecordedFigures, nowMs: number): void {
    this.#set(time, figures)
    this.#removeOutside(nowMs)
  }

  /** Adds the history of another node. */
  merge(samples: readonly FigureSample[], nowMs: number): void {
    for (const { time, nodes } of samples) for (const figures of nodes) this.#set(time, figures)
    this.#removeOutside(nowMs)
  }

  /** Oldest first. */
  samples(nowMs: number): readonly FigureSample[] {
    this.#removeOutside(nowMs)
    return [...this.#byTime]
      .map(([time, nodes]) => ({ time, nodes: [...nodes.values()] }))
      .sort((left, right) => left.time - right.time)
  }

  /** Time of the oldest sample; null without samples. */
  oldest(nowMs: number): number | null {
    return this.samples(nowMs)[0]?.time ?? null
  }

  /** Whether the history covers the 15 minutes. */
  isComplete(nowMs: number): boolean {
    const oldest = this.oldest(nowMs)
    return oldest !== null && nowMs - oldest >= HISTORY_MS - 2 * PERIOD_MS
  }

  #set(time: number, figures: NodeFigures): void {
    const nodes = this.#byTime.get(time)
    if (nodes === undefined) this.#byTime.set(time, new Map([[figures.node, figures]]))
    else nodes.set(figures.node, figures)
  }

  /** Samples are ahead after the system clock was set back. */
  #removeOutside(nowMs: number): void {
    for (const time of this.#byTime.keys())
      if (nowMs - time >= HISTORY_MS || time - nowMs > MAX_AHEAD_MS) this.#byTime.delete(time)
  }
}

export interface FigureRecorderDependencies {
  readonly node: string
  readonly counts: () => NodeCounts
  /** False while there is no operators' page. */
  readonly isEnabled: () => boolean
  readonly nowMs: () => number
  readonly onRecorded: (recorded: RecordedFigures) => void
  readonly onError: (error: unknown) => void
}

/** Records the figures of this node every five seconds, whether a page is open or not. */
export class FigureRecorder {
  readonly #dependencies: FigureRecorderDependencies
  #previous: NodeCounts | null = null
  #timer: NodeJS.Timeout | null = null

  constructor(dependencies: FigureRecorderDependencies) {
    this.#dependencies = dependencies
  }

  start(): void {
    this.record()
    this.#schedule()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  /** The first call only reads the counts, because rates need two. */
  record(): void {
    const { node, counts, isEnabled, nowMs, onRecorded, onError } = this.#dependencies
    if (!isEnabled()) {
      this.#previous = null
      return
    }
    try {
      const now = counts()
      const previous = this.#previous
      this.#previous = now
      if (previous === null) return
      // Timers fire a little early or late.
      const time = Math.round(nowMs() / PERIOD_MS) * PERIOD_MS
      onRecorded({ time, figures: figuresBetween(node, previous, now) })
    } catch (error) {
      onError(error)
    }
  }

  /** All nodes record at the same times, so that their figures can be added. */
  #schedule(): void {
    const untilNext = PERIOD_MS - (this.#dependencies.nowMs() % PERIOD_MS)
    // A timer that fired early would otherwise fire twice.
    const delayMs = untilNext < PERIOD_MS / 2 ? untilNext + PERIOD_MS : untilNext
    this.#timer = setTimeout(() => {
      this.record()
      this.#schedule()
    }, delayMs).unref()
  }
}
