import type { Conflator } from '../merging/keyed-list.js'
import type { Publication } from '../publication.js'
import { Backlog } from './backlog.js'
import type { Group } from './group.js'
import type { Subscription } from './subscription.js'
import type { TagFilter } from './tag-filter.js'

/** Deliveries per second that a subscriber can have, highest first. With few classes, each delivery is encoded once for many subscribers. */
export const RATES = [10, 5, 2, 1, 0.5, 0.2] as const
export type Rate = (typeof RATES)[number]

/** The class for a requested number of deliveries per second: rounded down, but at least the lowest class. */
export const rateFor = (maxRate: number): Rate =>
  RATES.find((rate) => rate <= maxRate) ?? RATES[RATES.length - 1] ?? 0.2

/**
 * Publications of another shape cannot be merged and are delivered one at a time. If more of them than this wait, the rate
 * gives way, so that the subscribers do not fall behind without limit.
 */
const MAX_WAITING = 16

export interface RateClassOptions {
  readonly rate: Rate
  readonly filter: TagFilter | null
  readonly conflator: Conflator
  readonly monotonicMs: () => number
  /** Runs the task after this time. Returns a function that cancels it. */
  readonly setTimer: (task: () => void, ms: number) => () => void
  readonly newGroup: (subscription: Subscription) => Group
  /** Sends the frames of these groups now. */
  readonly flush: (groups: readonly Group[]) => void
  /** A delivery failed for an unexpected reason. */
  readonly failed: (error: unknown) => void
}

/** Subscribers that have received the same publications, and the publications that wait for them. */
interface Cohort {
  readonly backlog: Backlog
  readonly groups: Group[]
}

/**
 * The subscribers of a channel with the same rate and filter. All deliveries of a class happen at the same times, at least one
 * interval apart. Subscribers that join between two deliveries form a cohort of their own until the next one, because they
 * have already received a part of what waits for the others.
 */
export class RateClass {
  readonly rate: Rate
  readonly filter: TagFilter | null
  readonly #options: RateClassOptions
  readonly #intervalMs: number
  #conflator: Conflator
  #cohorts: Cohort[] = []
  #epoch = ''
  #nextAt = Number.NEGATIVE_INFINITY
  #cancelTimer: (() => void) | null = null

  constructor(options: RateClassOptions) {
    this.rate = options.rate
    this.filter = options.filter
    this.#options = options
    this.#conflator = options.conflator
    this.#intervalMs = 1000 / options.rate
  }

  get groups(): readonly Group[] {
    return this.#cohorts.flatMap(({ groups }) => groups)
  }

  /** Waiting entries were merged by the old rules and are delivered without being merged again. */
  configure(conflator: Conflator): void {
    this.#conflator = conflator
    for (const { backlog } of this.#cohorts) backlog.configure(conflator)
  }

  /** Adds a subscriber that has received everything up to now except these publications. */
  add(subscription: Subscription, missed: readonly Publication[], epoch: string): void {
    if (epoch !== '') this.#epoch = epoch
    this.#addTo(this.#cohortFor(missed), subscription)
    if (missed.length > 0) this.#schedule()
  }

  #cohortFor(missed: readonly Publication[]): Cohort {
    const aligned = missed.length === 0 ? this.#cohorts.find(({ backlog }) => backlog.isEmpty) : undefined
    if (aligned !== undefined) return aligned
    const cohort: Cohort = { backlog: new Backlog(this.#conflator), groups: [] }
    for (const publication of missed) cohort.backlog.add(publication)
    this.#cohorts.push(cohort)
    return cohort
  }

  /** Returns true if no subscriber is left. The class must not be used after that. */
  remove(subscription: Subscription): boolean {
    subscription.group?.remove(subscription)
    this.#cohorts = this.#cohorts.filter(({ groups }) => groups.some((group) => group.subscriptions.length > 0))
    if (this.#cohorts.length > 0) return false
    this.#cancelTimer?.()
    this.#cancelTimer = null
    return true
  }

  deliver(publication: Publication, epoch: string): void {
    if (epoch !== '') this.#epoch = epoch
    for (const { backlog } of this.#cohorts) backlog.add(publication)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#cancelTimer !== null) return
    const { monotonicMs, setTimer } = this.#options
    this.#cancelTimer = setTimer(() => this.#tick(), Math.max(0, this.#nextAt - monotonicMs()))
  }

  #tick(): void {
    const { monotonicMs, flush, failed } = this.#options
    this.#cancelTimer = null
    this.#nextAt = monotonicMs() + this.#intervalMs
    try {
      flush(this.#cohorts.flatMap((cohort) => this.#enqueueDue(cohort)))
      this.#alignCohorts()
    } catch (error) {
      failed(error)
    }
    if (this.#cohorts.some(({ backlog }) => !backlog.isEmpty)) this.#schedule()
  }

  /** Passes what is due to the groups of a cohort. Returns the groups. */
  #enqueueDue({ backlog, groups }: Cohort): readonly Group[] {
    const publications: Publication[] = []
    do {
      const publication = backlog.takeFirst()
      if (publication === null) break
      publications.push(publication)
    } while (backlog.length > MAX_WAITING)
    if (publications.length === 0) return []
    const receiving = groups.filter((group) => group.subscriptions.length > 0)
    for (const group of receiving) for (const publication of publications) group.enqueue(publication, this.#epoch)
    return receiving
  }

  /** Cohorts for which nothing waits have received the same, and continue as one. */
  #alignCohorts(): void {
    const aligned = this.#cohorts.filter(
      ({ backlog, groups }) =>
        backlog.isEmpty &&
        // A slow client has a merged queue that belongs to its group.
        groups.every(({ subscriptions }) => subscriptions.every((subscription) => subscription.backlog === null))
    )
    const [first, ...others] = aligned
    if (first === undefined || others.length === 0) return
    for (const { groups } of others) {
      for (const { subscriptions } of groups) {
        for (const subscription of [...subscriptions]) {
          subscription.group?.remove(subscription)
          this.#addTo(first, subscription)
        }
      }
    }
    this.#cohorts = this.#cohorts.filter((cohort) => !others.includes(cohort))
  }

  #addTo({ groups }: Cohort, subscription: Subscription): void {
    const { framing } = subscription.outbox.transport
    const known = groups.find((group) => group.framing === framing && group.takesDelta === subscription.takesDelta)
    const group = known ?? this.#options.newGroup(subscription)
    if (known === undefined) groups.push(group)
    group.add(subscription)
  }
}
