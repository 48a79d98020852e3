import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { Relay } from '../core/relay.js'
import type { Totals } from '../metrics/metrics.js'
import type { Figures, NodeFigures } from './contract.js'

/** What one node counts: since its start, or right now. Rates are made by who asks, so that several can. */
export interface NodeCounts
  extends Omit<Figures, 'publishesPerSecond' | 'deliveriesPerSecond' | 'bytesPerSecond'>,
    Totals {
  readonly name: string
  /** Of the node's own clock, so that a late answer makes no false rate. */
  readonly atMs: number
}

/** One walk over the connections, which looks closer at those that are behind. */
export const nodeCounts = (relay: Relay, name: string, totals: Totals, delay: LoopDelay): NodeCounts => {
  const { clients, subscriptions, channels } = relay.stats()
  let queuedBytes = 0
  let slowReaders = 0
  let conflatedReaders = 0
  for (const client of relay.clients) {
    if (!client.isBehind) continue
    slowReaders++
    queuedBytes += client.waitingBytes
    if (client.hasBacklog) conflatedReaders++
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
    eventLoopDelayMs: rounded(delay.worst()),
    memoryBytes: process.memoryUsage.rss()
  }
}

/** What happened between two looks at a node, as rates. */
export const figuresBetween = (node: string, before: NodeCounts, after: NodeCounts): NodeFigures => {
  const { published, delivered, bytesSent, atMs, ...now } = after
  const seconds = (atMs - before.atMs) / 1000
  // A node that started anew counts from zero.
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
