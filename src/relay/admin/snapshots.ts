import { after, type MaybePromise } from '../core/broker.js'
import type { Log } from '../core/context.js'
import type { Cluster } from '../core/survey.js'
import type { Frame, NodeFigures } from './contract.js'
import { checksOf } from './diagnostics.js'
import { figuresBetween, type NodeCounts } from './figures.js'
import { eventText } from './live.js'

const KEPT_MS = 15 * 60 * 1000

/** The last 15 minutes, as far as somebody was looking. */
export class FrameHistory {
  #frames: Frame[] = []

  add(frame: Frame): void {
    // The clock was set back: a chart has no place for what is ahead of now.
    if ((this.#frames.at(-1)?.time ?? 0) > frame.time)
      this.#frames = this.#frames.filter(({ time }) => time < frame.time)
    this.#frames.push(frame)
    const tooOld = this.#frames.findIndex(({ time }) => frame.time - time < KEPT_MS)
    if (tooOld > 0) this.#frames.splice(0, tooOld)
  }

  /** What other nodes have seen; one frame for each second is enough. */
  merge(others: readonly Frame[]): void {
    const bySecond = new Map<number, Frame>()
    for (const frame of [...others, ...this.#frames]) bySecond.set(Math.floor(frame.time / 1000), frame)
    this.#frames = [...bySecond.values()].sort((left, right) => left.time - right.time)
  }

  since(nowMs: number): readonly Frame[] {
    return this.#frames.filter(({ time }) => nowMs - time < KEPT_MS)
  }
}

const PERIOD_MS = 1000

/** Somebody who looks. */
export interface SnapshotObserver {
  /** False for what it could not take. */
  send(event: string): boolean
}

export interface SnapshotCollectorDependencies {
  readonly fleet: Cluster
  readonly nowMs: () => number
  readonly log: Log
}

/** Asks all nodes once a second, however many operators look; and not at all while nobody does. */
export class SnapshotCollector {
  readonly #parts: SnapshotCollectorDependencies
  /** Each with the checks that it was told last. */
  readonly #observers = new Map<SnapshotObserver, string>()
  readonly #history = new FrameHistory()
  #timer: NodeJS.Timeout | null = null
  #before = new Map<string, NodeCounts>()
  #checks = ''
  #isAsking = false
  #catchingUp: MaybePromise<void> = undefined

  constructor(parts: SnapshotCollectorDependencies) {
    this.#parts = parts
  }

  get isRunning(): boolean {
    return this.#timer !== null
  }

  /** Looks from now on, until what is handed back is called. */
  add(observer: SnapshotObserver): () => void {
    this.#observers.set(observer, '')
    if (this.#timer === null) this.#start()
    void after(this.#catchingUp, () => this.#greet(observer))
    return () => {
      this.#observers.delete(observer)
      if (this.#observers.size === 0) this.stop()
    }
  }

  /** The last minutes, as far as somebody was looking here. */
  frames(): readonly Frame[] {
    return this.#history.since(this.#parts.nowMs())
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#before.clear()
    this.#checks = ''
  }

  #start(): void {
    this.#catchingUp = this.#parts.fleet.size > 1 ? this.#catchUp() : undefined
    // The first look has nothing to compare with; its figures come with the second.
    void this.#gather()
    this.#timer = setInterval(() => void this.#gather(), PERIOD_MS)
  }

  /** Others may have looked through another node meanwhile. */
  async #catchUp(): Promise<void> {
    try {
      const answers = await this.#parts.fleet.survey('adminFrames', null)
      this.#history.merge(answers.flatMap(({ result }) => result))
    } catch (error) {
      // Every onlooker waits for this, and none of them looks at an error.
      this.#parts.log.error({ err: error }, 'figures of other nodes not available')
    }
  }

  #greet(observer: SnapshotObserver): void {
    try {
      observer.send(eventText('history', this.frames()))
      this.#tellChecks()
    } catch (error) {
      this.#parts.log.error({ err: error }, 'figures not sent to the admin page')
    }
  }

  async #gather(): Promise<void> {
    // A fleet that takes longer than a second is not asked twice at once.
    if (this.#isAsking) return
    this.#isAsking = true
    try {
      await this.#look()
    } catch (error) {
      this.#parts.log.error({ err: error }, 'the figures for the admin page could not be gathered')
    } finally {
      this.#isAsking = false
    }
  }

  async #look(): Promise<void> {
    const { fleet, nowMs } = this.#parts
    const answers = await fleet.survey('adminFigures', null)
    if (this.#observers.size === 0) return
    const time = nowMs()
    const nodes: NodeFigures[] = []
    const now = new Map<string, NodeCounts>()
    for (const { node, result } of answers) {
      const before = this.#before.get(node)
      now.set(node, result.counts)
      if (before !== undefined) nodes.push(figuresBetween(node, before, result.counts))
    }
    this.#before = now
    if (nodes.length > 0) this.#tell({ time, nodes })
    const diagnostics = answers.map(({ result }) => result.symptoms)
    this.#checks = eventText('checks', checksOf(diagnostics, time))
    this.#tellChecks()
  }

  #tell(frame: Frame): void {
    this.#history.add(frame)
    const event = eventText('frame', frame)
    // Who is behind misses nothing: the next second tells more.
    for (const observer of this.#observers.keys()) observer.send(event)
  }

  /** Only what has changed; so who could not take it is told again. */
  #tellChecks(): void {
    const checks = this.#checks
    for (const [observer, told] of this.#observers) {
      if (told !== checks && observer.send(checks)) this.#observers.set(observer, checks)
    }
  }
}
