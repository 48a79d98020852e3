import type { Log } from '../../shared/log.js'
import type { ExpectedTraffic } from '../config/expected-traffic.js'
import type { Cluster } from '../core/survey.js'
import type { FigureSample, NodeFigures } from './contract.js'
import { runChecks } from './diagnostics.js'
import { eventText } from './live.js'
import { figuresBetween, type NodeCounts } from './node-figures.js'

const HISTORY_MS = 15 * 60 * 1000

/** The samples of the last 15 minutes in which a page was open. */
export class SampleHistory {
  #samples: FigureSample[] = []

  add(sample: FigureSample): void {
    // After the system clock was set back, samples from the future are removed.
    if ((this.#samples.at(-1)?.time ?? 0) > sample.time)
      this.#samples = this.#samples.filter(({ time }) => time < sample.time)
    this.#samples.push(sample)
    const firstRecent = this.#samples.findIndex(({ time }) => sample.time - time < HISTORY_MS)
    if (firstRecent > 0) this.#samples.splice(0, firstRecent)
  }

  /** Merges the samples of other nodes, at most one sample per second. */
  merge(others: readonly FigureSample[]): void {
    const bySecond = new Map<number, FigureSample>()
    for (const sample of [...others, ...this.#samples]) bySecond.set(Math.floor(sample.time / 1000), sample)
    this.#samples = [...bySecond.values()].sort((left, right) => left.time - right.time)
  }

  since(nowMs: number): readonly FigureSample[] {
    return this.#samples.filter(({ time }) => nowMs - time < HISTORY_MS)
  }
}

const PERIOD_MS = 1000

/** An open page. */
export interface FigureObserver {
  /** Returns false if the event was dropped because the page does not read. */
  send(event: string): boolean
}

export interface FigureCollectorDependencies {
  readonly cluster: Cluster
  readonly expectedTraffic: readonly ExpectedTraffic[]
  readonly nowMs: () => number
  readonly log: Log
}

/** Collects the figures and checks of all nodes once per second while at least one page is open. */
export class FigureCollector {
  readonly #dependencies: FigureCollectorDependencies
  /** Each observer with the checks that it received last. */
  readonly #observers = new Map<FigureObserver, string>()
  readonly #history = new SampleHistory()
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

  /** The samples that this node has collected. */
  samples(): readonly FigureSample[] {
    return this.#history.since(this.#dependencies.nowMs())
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#previousCounts.clear()
    this.#checks = ''
  }

  #start(): void {
    this.#historyLoaded = this.#dependencies.cluster.size > 1 ? this.#loadHistory() : Promise.resolve()
    // Rates need the counts of two collections, so the first sample follows the second one.
    void this.#collect()
    this.#timer = setInterval(() => void this.#collect(), PERIOD_MS)
  }

  /** Loads the samples that other nodes have collected for their pages. Never rejects. */
  async #loadHistory(): Promise<void> {
    try {
      const results = await this.#dependencies.cluster.survey('adminSamples', null)
      this.#history.merge(results.flatMap(({ result }) => result))
    } catch (error) {
      this.#dependencies.log.error({ err: error }, 'admin figures of other nodes not available')
    }
  }

  #sendInitial(observer: FigureObserver): void {
    try {
      observer.send(eventText('history', this.samples()))
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
    this.#history.add(sample)
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
