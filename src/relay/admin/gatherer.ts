import type { Log } from '../core/context.js'
import type { Fleet } from '../core/fleet.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import { checksOf } from './checks.js'
import type { Frame, NodeFigures } from './contract.js'
import { eventText } from './event-stream.js'
import { figuresBetween, type NodeCounts } from './figures.js'
import { FrameHistory } from './frame-history.js'

const PERIOD_MS = 1000

/** Somebody who looks. */
export interface Onlooker {
  /** False for what it could not take. */
  send(event: string): boolean
}

export interface GathererParts {
  readonly fleet: Fleet
  readonly nowMs: () => number
  readonly log: Log
}

/** Asks all nodes once a second, however many operators look; and not at all while nobody does. */
export class Gatherer {
  readonly #parts: GathererParts
  /** Each with the checks that it was told last. */
  readonly #onlookers = new Map<Onlooker, string>()
  readonly #history = new FrameHistory()
  #timer: NodeJS.Timeout | null = null
  #before = new Map<string, NodeCounts>()
  #checks = ''
  #isAsking = false
  #catchingUp: MaybePromise<void> = undefined

  constructor(parts: GathererParts) {
    this.#parts = parts
  }

  get isRunning(): boolean {
    return this.#timer !== null
  }

  /** Looks from now on, until what is handed back is called. */
  add(onlooker: Onlooker): () => void {
    this.#onlookers.set(onlooker, '')
    if (this.#timer === null) this.#start()
    void after(this.#catchingUp, () => this.#greet(onlooker))
    return () => {
      this.#onlookers.delete(onlooker)
      if (this.#onlookers.size === 0) this.stop()
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
      const answers = await this.#parts.fleet.ask('adminFrames', null)
      this.#history.merge(answers.flatMap(({ answer }) => answer))
    } catch (error) {
      // Every onlooker waits for this, and none of them looks at an error.
      this.#parts.log.error({ err: error }, 'figures of other nodes not available')
    }
  }

  #greet(onlooker: Onlooker): void {
    try {
      onlooker.send(eventText('history', this.frames()))
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
    const answers = await fleet.ask('adminFigures', null)
    if (this.#onlookers.size === 0) return
    const time = nowMs()
    const nodes: NodeFigures[] = []
    const now = new Map<string, NodeCounts>()
    for (const { node, answer } of answers) {
      const before = this.#before.get(node)
      now.set(node, answer.counts)
      if (before !== undefined) nodes.push(figuresBetween(node, before, answer.counts))
    }
    this.#before = now
    if (nodes.length > 0) this.#tell({ time, nodes })
    const symptoms = answers.map(({ answer }) => answer.symptoms)
    this.#checks = eventText('checks', checksOf(symptoms, time))
    this.#tellChecks()
  }

  #tell(frame: Frame): void {
    this.#history.add(frame)
    const event = eventText('frame', frame)
    // Who is behind misses nothing: the next second tells more.
    for (const onlooker of this.#onlookers.keys()) onlooker.send(event)
  }

  /** Only what has changed; so who could not take it is told again. */
  #tellChecks(): void {
    const checks = this.#checks
    for (const [onlooker, told] of this.#onlookers) {
      if (told !== checks && onlooker.send(checks)) this.#onlookers.set(onlooker, checks)
    }
  }
}
