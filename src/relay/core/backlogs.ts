import { Backlog } from './backlog.js'
import type { Publication } from './broker.js'
import type { Conflator } from './conflate.js'
import type { Subscription } from './subscription.js'

/** Each is merged apart. Whoever falls behind while there are as many joins the newest, and gets some entries twice. */
const MAX_BACKLOGS = 4

/** The subscriptions of one group that wait because their clients are behind. */
export class Backlogs {
  readonly #conflator: Conflator
  #backlogs: Backlog[] = []
  /** The one that begins with the publications of the present turn. */
  #begunNow: Backlog | null = null

  constructor(conflator: Conflator) {
    this.#conflator = conflator
  }

  /** Before any subscription is looked at in a turn. */
  extend(publications: readonly Publication[]): void {
    this.#begunNow = null
    for (const backlog of this.#backlogs) for (const publication of publications) backlog.add(publication)
  }

  join(subscription: Subscription, publications: readonly Publication[]): void {
    const backlog =
      this.#begunNow ?? (this.#backlogs.length < MAX_BACKLOGS ? this.#begin(publications) : this.#newest())
    backlog.readers++
    subscription.backlog = backlog
    subscription.backlogKnown = backlog.size - publications.length
  }

  leave(subscription: Subscription): void {
    const { backlog } = subscription
    if (backlog === null) return
    subscription.backlog = null
    if (--backlog.readers === 0) this.#backlogs = this.#backlogs.filter((each) => each !== backlog)
    if (backlog.readers === 0 && this.#begunNow === backlog) this.#begunNow = null
  }

  #begin(publications: readonly Publication[]): Backlog {
    const backlog = new Backlog(this.#conflator)
    for (const publication of publications) backlog.add(publication)
    this.#backlogs.push(backlog)
    this.#begunNow = backlog
    return backlog
  }

  #newest(): Backlog {
    return this.#backlogs[this.#backlogs.length - 1] as Backlog
  }
}
