import type { Framing } from '../codec/transport.js'
import type { Conflator } from '../merging/keyed-list.js'
import type { Publication } from '../publication.js'
import type { Group } from './group.js'
import type { Rate, RateClass } from './rate-class.js'
import type { Subscription } from './subscription.js'
import { type PlacedPublication, partFor, type View } from './view.js'

/** How the groups of a channel create the ones of a view. */
export interface ViewGroupsDependencies {
  readonly newGroup: (subscription: Subscription) => Group
  readonly newRateClass: (rate: Rate) => RateClass
  /** The group has frames to send. */
  readonly enqueued: (group: Group) => void
  /** The publication has nothing for so many subscribers. */
  readonly dropped: (subscribers: number) => void
}

/** The groups of one view: one for each framing, and the rate classes. */
class GroupsOfView {
  readonly view: View
  readonly groups: Group[] = []
  readonly rates = new Map<Rate, RateClass>()

  constructor(view: View) {
    this.view = view
  }

  get all(): Group[] {
    return [...this.groups, ...[...this.rates.values()].flatMap((rateClass) => rateClass.groups)]
  }

  get size(): number {
    let size = 0
    for (const { subscriptions } of this.groups) size += subscriptions.length
    for (const { groups } of this.rates.values()) for (const { subscriptions } of groups) size += subscriptions.length
    return size
  }

  get isEmpty(): boolean {
    return this.rates.size === 0 && this.groups.every(({ subscriptions }) => subscriptions.length === 0)
  }
}

/** The live subscriptions with a view. They have no position, so every view is a stream of its own. */
export class ViewGroups {
  readonly #views = new Map<string, GroupsOfView>()
  readonly #dependencies: ViewGroupsDependencies

  constructor(dependencies: ViewGroupsDependencies) {
    this.#dependencies = dependencies
  }

  get all(): Group[] {
    return [...this.#views.values()].flatMap(({ all }) => all)
  }

  get rateClasses(): readonly RateClass[] {
    return [...this.#views.values()].flatMap(({ rates }) => [...rates.values()])
  }

  configure(conflator: Conflator): void {
    for (const rateClass of this.rateClasses) rateClass.configure(conflator)
  }

  /** `missed` are the parts of publications that a client with a limited rate has not received yet. */
  add(subscription: Subscription, view: View, missed: readonly Publication[]): void {
    const known = this.#views.get(view.text) ?? new GroupsOfView(view)
    this.#views.set(view.text, known)
    const { rate, outbox } = subscription
    if (rate !== null) {
      const rateClass = known.rates.get(rate) ?? this.#dependencies.newRateClass(rate)
      known.rates.set(rate, rateClass)
      rateClass.add(subscription, missed, '')
      return
    }
    const { framing } = outbox.transport
    const existing = known.groups.find((group) => group.framing === framing)
    const group = existing ?? this.#dependencies.newGroup(subscription)
    if (existing === undefined) known.groups.push(group)
    group.add(subscription)
  }

  remove(subscription: Subscription, view: View): void {
    const known = this.#views.get(view.text)
    if (known === undefined) return
    const { rate, group } = subscription
    if (rate === null) group?.remove(subscription)
    else if (known.rates.get(rate)?.remove(subscription)) known.rates.delete(rate)
    if (known.isEmpty) this.#views.delete(view.text)
  }

  deliver(publication: PlacedPublication): void {
    const frames: Frames = new Map()
    let dropped = 0
    for (const known of this.#views.values()) {
      const { view, groups, rates } = known
      const part = partFor(view, publication)
      if (part === null) {
        dropped += known.size
        continue
      }
      for (const group of groups) {
        if (group.subscriptions.length > 0 && group.enqueue(part, '', frameOf(frames, group, part)))
          this.#dependencies.enqueued(group)
      }
      for (const rateClass of rates.values()) rateClass.deliver(part, '')
    }
    if (dropped > 0) this.#dependencies.dropped(dropped)
  }
}

/** Views that receive the same part share its frames. */
type Frames = Map<Publication, Map<Framing, Buffer>>

const frameOf = (frames: Frames, group: Group, part: Publication): Buffer => {
  const known = frames.get(part) ?? new Map<Framing, Buffer>()
  frames.set(part, known)
  const frame = known.get(group.framing) ?? group.fullFrame(part, '')
  known.set(group.framing, frame)
  return frame
}
