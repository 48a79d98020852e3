import type { Log } from '../../shared/log.js'
import type { ExpectedTraffic } from '../config/expected-traffic.js'
import type { Cluster } from '../core/survey.js'
import type { FigureSample, NodeFigures } from './contract.js'
import { runChecks } from './diagnostics.js'
import type { FigureHistory } from './figure-history.js'
import { eventText } from './live.js'
import { figuresBetween, type NodeCounts } from './node-figures.js'

const PERIOD_MS = 1000
/** Figures of other nodes arrive within this time. */
const ARRIVAL_MS = 1000

/** An open page. */
export interface FigureObserver {
  /** Returns false if the event was dropped because the page does not read. */
  send(event: string): boolean
}

export interface FigureCollectorDependencies {
  readonly cluster: Cluster
  readonly history: FigureHistory
  readonly expectedTraffic: readonly ExpectedTraffic[]
  readonly nowMs: () => number
  readonly log: Log
}

/** Collects the figures and checks of all nodes once per second while at least one page is open. */
export class FigureCollector {
  readonly #dependencies: FigureCollectorDependencies
  /** Each observer with the checks that it received last. */
  readonly #observers = new Map<FigureObserver, string>()
  #timer: NodeJS.Timeout | null = null
  #previousCounts = new Map<string, NodeCounts>()
  #checks = ''
  #isCollecting = false
  #historyLoaded = Promise.resolve()

  constructor(dependencies: FigureCollectorDependencies) {
    this.#dependencies = dependencies
  }

  get isRunning(): boolean {
    return this.#timer !== null
  }

  /** Sends events to the observer until the returned function is called. */
  add(observer: FigureObserver): () => void {
    this.#observers.set(observer, '')
    if (this.#timer === null) this.#start()
    void this.#historyLoaded.then(() => this.#sendInitial(observer))
    return () => {
      this.#observers.delete(observer)
      if (this.#observers.size === 0) this.stop()
    }
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#previousCounts.clear()
    this.#checks = ''
  }

  #start(): void {
    this.#historyLoaded = this.#loadHistory()
    // Rates need the counts of two collections, so the first sample follows the second one.
    void this.#collect()
    this.#timer = setInterval(() => void this.#collect(), PERIOD_MS)
  }

  /** A node that was started recently loads the history of the node with the longest one. Never rejects. */
  async #loadHistory(): Promise<void> {
    const { cluster, history, nowMs, log } = this.#dependencies
    if (cluster.size === 1 || history.isComplete(nowMs())) return
    try {
      const starts = await cluster.survey('adminHistoryStart', null)
      const known = starts.flatMap(({ node, result }) => (result === null ? [] : [{ node, oldest: result }]))
      const [longest] = known.sort((left, right) => left.oldest - right.oldest)
      if (longest === undefined) return
      const samples = await cluster.surveyNode(longest.node, 'adminHistory', null)
      if (samples !== null) history.merge(samples, nowMs())
    } catch (error) {
      log.error({ err: error }, 'admin figures of other nodes not available')
    }
  }

  #sendInitial(observer: FigureObserver): void {
    try {
      const { history, nowMs } = this.#dependencies
      const now = nowMs()
      // The newest sample may lack nodes whose figures have not arrived yet.
      const complete = history.samples(now).filter(({ time }) => now - time >= ARRIVAL_MS)
      observer.send(eventText('history', complete))
      this.#sendChecks()
    } catch (error) {
      this.#dependencies.log.error({ err: error }, 'admin figures not sent')
    }
  }

  async #collect(): Promise<void> {
    // A survey that takes longer than a second does not overlap with the next.
    if (this.#isCollecting) return
    this.#isCollecting = true
    try {
      await this.#surveyNodes()
    } catch (error) {
      this.#dependencies.log.error({ err: error }, 'admin figures not collected')
    } finally {
      this.#isCollecting = false
    }
  }

  async #surveyNodes(): Promise<void> {
    const { cluster, expectedTraffic, nowMs } = this.#dependencies
    const results = await cluster.survey('adminFigures', null)
    if (this.#observers.size === 0) return
    const time = nowMs()
    const nodes: NodeFigures[] = []
    const counts = new Map<string, NodeCounts>()
    for (const { node, result } of results) {
      const previous = this.#previousCounts.get(node)
      counts.set(node, result.counts)
      if (previous !== undefined) nodes.push(figuresBetween(node, previous, result.counts))
    }
    this.#previousCounts = counts
    if (nodes.length > 0) this.#sendSample({ time, nodes })
    const diagnostics = results.map(({ result }) => result.diagnostics)
    this.#checks = eventText('checks', runChecks(diagnostics, expectedTraffic, time))
    this.#sendChecks()
  }

  #sendSample(sample: FigureSample): void {
    const event = eventText('sample', sample)
    // A dropped sample is not sent again; the next one follows in a second.
    for (const observer of this.#observers.keys()) observer.send(event)
  }

  /** Sends the checks to observers that have not received this version. */
  #sendChecks(): void {
    const checks = this.#checks
    for (const [observer, sent] of this.#observers) {
      if (sent !== checks && observer.send(checks)) this.#observers.set(observer, checks)
    }
  }
}
