import type { Log } from '../../shared/log.js'
import type { ExpectedTraffic } from '../config/expected-traffic.js'
import type { AdminSurveys } from './admin-surveys.js'
import { runChecks } from './diagnostics.js'
import type { FigureHistory } from './figure-history.js'
import { type EventStream, eventText } from './live.js'
import { FigureSampler } from './node-figures.js'

const PERIOD_MS = 1000

export interface FigureCollectorDependencies {
  readonly surveys: AdminSurveys
  readonly history: FigureHistory
  readonly expectedTraffic: () => readonly ExpectedTraffic[]
  readonly nowMs: () => number
  readonly log: Log
}

/** Collects the figures and checks of all nodes once per second while at least one page is open. */
export class FigureCollector {
  readonly #dependencies: FigureCollectorDependencies
  readonly #observers = new Set<Pick<EventStream, 'send'>>()
  #sampler = new FigureSampler()
  #timer: NodeJS.Timeout | null = null
  #isCollecting = false
  #historyLoaded = Promise.resolve()

  constructor(dependencies: FigureCollectorDependencies) {
    this.#dependencies = dependencies
  }

  /** Sends events to the observer until the returned function is called. */
  add(observer: Pick<EventStream, 'send'>): () => void {
    this.#observers.add(observer)
    if (this.#timer === null) this.#start()
    const { history } = this.#dependencies
    void this.#historyLoaded.then(() => observer.send(eventText('history', history.samples)))
    return () => {
      this.#observers.delete(observer)
      if (this.#observers.size === 0) this.stop()
    }
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#sampler = new FigureSampler()
  }

  #start(): void {
    this.#historyLoaded = this.#loadHistory()
    // Rates need the counts of two collections, so the first sample follows the second one.
    void this.#collect()
    this.#timer = setInterval(() => void this.#collect(), PERIOD_MS)
  }

  /** A node that was started recently loads the history of the node with the longest one. Never rejects. */
  async #loadHistory(): Promise<void> {
    const { surveys, history, log } = this.#dependencies
    try {
      const starts = await surveys.survey('adminHistoryStart', null)
      const known = starts.flatMap(({ node, result }) => (result === null ? [] : [{ node, oldest: result }]))
      const [longest] = known.sort((left, right) => left.oldest - right.oldest)
      if (longest === undefined || longest.oldest >= (history.oldest ?? Number.POSITIVE_INFINITY)) return
      const samples = await surveys.surveyNode(longest.node, 'adminHistory', null)
      if (samples !== null) history.addEarlier(samples)
    } catch (error) {
      log.error({ err: error }, 'admin figures of other nodes not available')
    }
  }

  async #collect(): Promise<void> {
    // A survey that takes longer than a second does not overlap with the next.
    if (this.#isCollecting) return
    this.#isCollecting = true
    try {
      await this.#historyLoaded
      await this.#surveyNodes()
    } catch (error) {
      this.#dependencies.log.error({ err: error }, 'admin figures not collected')
    } finally {
      this.#isCollecting = false
    }
  }

  async #surveyNodes(): Promise<void> {
    const { surveys, expectedTraffic, nowMs } = this.#dependencies
    const results = await surveys.survey('adminFigures', null)
    const time = nowMs()
    const nodes = this.#sampler.figures(results.map(({ node, result }) => [node, result.counts]))
    const diagnostics = results.map(({ result }) => result.diagnostics)
    const checks = eventText('checks', runChecks(diagnostics, expectedTraffic(), time))
    const sample = nodes.length === 0 ? '' : eventText('sample', { time, nodes })
    // An event that is dropped is not sent again; the next one follows in a second.
    for (const observer of this.#observers) observer.send(sample + checks)
  }
}
