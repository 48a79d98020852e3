import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { Relay } from '../core/relay.js'
import type { Totals } from '../metrics/relay-metrics.js'
import { hasBacklog, waitingBytes } from './client-queue.js'
import type { Figures, NodeFigures } from './contract.js'

/** Counters since the start of a node, and current values. Rates are computed by the node that surveys it. */
export interface NodeCounts
  extends Omit<Figures, 'publishesPerSecond' | 'deliveriesPerSecond' | 'bytesPerSecond'>,
    Totals {
  readonly name: string
  /** On the node's own monotonic clock, so that a late response does not distort rates. */
  readonly atMs: number
}

/** Iterates over all connections once. */
export const nodeCounts = (relay: Relay, name: string, totals: Totals, loopDelay: LoopDelay): NodeCounts => {
  const { clients, subscriptions, channels } = relay.stats()
  let queuedBytes = 0
  let slowReaders = 0
  let conflatedReaders = 0
  for (const client of relay.clients) {
    if (!client.isBehind) continue
    slowReaders++
    queuedBytes += waitingBytes(client)
    if (hasBacklog(client)) conflatedReaders++
  }
  return {
    ...totals,
    name,
    atMs: relay.clocks.monotonicMs(),
    connections: clients,
    subscriptions,
    channels,
    queuedBytes,
    slowReaders,
    conflatedReaders,
    eventLoopDelayMs: rounded(loopDelay.takeMaximum()),
    memoryBytes: process.memoryUsage.rss()
  }
}

/** Computes the figures of nodes from their counts now and at the previous call. */
export class FigureSampler {
  #previous: ReadonlyMap<string, NodeCounts> = new Map()

  /** Without nodes that the previous call did not have. */
  figures(counts: readonly (readonly [node: string, counts: NodeCounts])[]): readonly NodeFigures[] {
    const previous = this.#previous
    this.#previous = new Map(counts)
    return counts.flatMap(([node, after]) => {
      const before = previous.get(node)
      return before === undefined ? [] : [figuresBetween(node, before, after)]
    })
  }
}

const figuresBetween = (node: string, before: NodeCounts, after: NodeCounts): NodeFigures => {
  const { published, delivered, bytesSent, atMs, ...now } = after
  const seconds = (atMs - before.atMs) / 1000
  // Counters of a restarted node start at zero.
  const rate = (from: number, to: number): number => (seconds <= 0 ? 0 : rounded(Math.max(0, to - from) / seconds))
  return {
    node,
    ...now,
    publishesPerSecond: rate(before.published, published),
    deliveriesPerSecond: rate(before.delivered, delivered),
    bytesPerSecond: Math.round(rate(before.bytesSent, bytesSent))
  }
}

const rounded = (value: number): number => Math.round(value * 10) / 10

export interface LoopDelayOptions {
  /** Each measurement wakes the process up. */
  readonly resolutionMs: number
  /** Measuring stops after this time without a read. */
  readonly unusedMs: number
}

/** The maximum delay of the event loop. It is measured only while it is read regularly. */
export class LoopDelay {
  readonly #options: LoopDelayOptions
  #histogram: IntervalHistogram | null = null
  #stopTimer: NodeJS.Timeout | null = null

  constructor(options: LoopDelayOptions) {
    this.#options = options
  }

  /** Returns the maximum since the last call, in milliseconds. */
  takeMaximum(): number {
    const { resolutionMs, unusedMs } = this.#options
    if (this.#histogram === null) {
      this.#histogram = monitorEventLoopDelay({ resolution: resolutionMs })
      this.#histogram.enable()
      this.#stopTimer = setTimeout(() => this.stop(), unusedMs).unref()
      return 0
    }
    this.#stopTimer?.refresh()
    const { count, max } = this.#histogram
    this.#histogram.reset()
    // The histogram contains the sampling interval itself.
    return count === 0 ? 0 : Math.max(0, max / 1e6 - resolutionMs)
  }

  stop(): void {
    this.#histogram?.disable()
    this.#histogram = null
    if (this.#stopTimer !== null) clearTimeout(this.#stopTimer)
    this.#stopTimer = null
  }
}
