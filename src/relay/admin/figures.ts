import type { Connection } from '../core/connection.js'
import type { Relay } from '../core/relay.js'
import type { Totals } from '../edge/metrics.js'
import type { Figures, NodeFigures } from './contract.js'
import type { LoopDelay } from './loop-delay.js'

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
  const { roster, monotonicMs } = relay.context
  const { clients, subscriptions, channels } = relay.stats()
  let queuedBytes = 0
  let slowReaders = 0
  let conflatedReaders = 0
  for (const connection of roster.all) {
    if (!connection.outbox.isBehind) continue
    slowReaders++
    queuedBytes += waitingBytes(connection)
    if (hasBacklog(connection)) conflatedReaders++
  }
  return {
    ...totals,
    name,
    atMs: monotonicMs(),
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

const hasBacklog = ({ subscriptions }: Connection): boolean => {
  for (const { backlog } of subscriptions.values()) if (backlog !== null) return true
  return false
}

/** On its way to the client, and merged for it meanwhile. */
export const waitingBytes = ({ outbox, subscriptions }: Connection): number => {
  let bytes = outbox.unsentBytes
  if (!outbox.isBehind) return bytes
  for (const { backlog } of subscriptions.values()) bytes += backlog?.length ?? 0
  return bytes
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
