import { Conflation } from '../merging/conflation.js'
import { type Conflator, copying } from '../merging/keyed-list.js'
import type { Publication } from '../publication.js'
import type { Subscription } from './subscription.js'

/** Merged publications, or a single one that does not have the shape to be merged. */
interface Segment {
  readonly conflation: Conflation | null
  newest: Publication
  /** Number of publications in the backlog up to and including the newest. */
  end: number
}

/**
 * Publications of one channel that wait, merged by key: for clients that are behind, or until the next delivery of a rate
 * class. It is shared by all clients that wait for the same, so ten cost as much as one.
 */
export class Backlog {
  #conflator: Conflator
  readonly #segments: Segment[] = []
  /** Total size of all segments except the last. */
  #bytesBefore = 0
  /** The next publication starts a new segment. */
  #isSealed = false
  /** Number of publications that were added. */
  size = 0
  /** Number of subscriptions that use it. */
  readers = 0

  constructor(conflator: Conflator) {
    this.#conflator = conflator
  }

  add(publication: Publication): void {
    this.size++
    const last = this.#segments[this.#segments.length - 1]
    const { data } = publication
    const list = typeof data === 'string' ? this.#conflator.read(data) : null
    if (list !== null && last !== undefined && last.conflation !== null && !this.#isSealed) {
      last.conflation.add(list)
      // A publication without history has no offset; the client's position then stays at the previous one.
      last.newest = publication.offset > 0 ? publication : { ...publication, offset: last.newest.offset }
      last.end = this.size
      return
    }
    if (last !== undefined) this.#bytesBefore += bytesOf(last)
    this.#isSealed = false
    const conflation = list === null ? null : new Conflation()
    if (list !== null) conflation?.add(list)
    this.#segments.push({ conflation, newest: publication, end: this.size })
  }

  /** Changed rules apply to later publications, which are not merged with the earlier ones. */
  configure(conflator: Conflator): void {
    this.#conflator = conflator
    this.#isSealed = true
  }

  /** Number of publications that wait, each merged from one or more. */
  get length(): number {
    return this.#segments.length
  }

  get isEmpty(): boolean {
    return this.#segments.length === 0
  }

  /** Removes the first of the merged publications; null if nothing waits. */
  takeFirst(): Publication | null {
    const first = this.#segments.shift()
    if (first === undefined) return null
    this.#bytesBefore = this.#segments.length === 0 ? 0 : this.#bytesBefore - bytesOf(first)
    return publicationOf(first)
  }

  /** Size of everything that waits. */
  get bytes(): number {
    const last = this.#segments[this.#segments.length - 1]
    return last === undefined ? 0 : this.#bytesBefore + bytesOf(last)
  }

  /**
   * The merged publications in order, each with the offset of its newest part. Segments that contain nothing after the first
   * `start` publications are omitted.
   */
  publications(start: number): readonly Publication[] {
    return this.#segments.filter(({ end }) => end > start).map(publicationOf)
  }
}

const publicationOf = ({ conflation, newest }: Segment): Publication =>
  conflation === null ? newest : { ...newest, data: conflation.toJson() }

const bytesOf = ({ conflation, newest }: Segment): number => conflation?.bytes ?? Buffer.byteLength(newest.data)

/** Each backlog is merged separately. Above this number clients share the newest one and get some entries twice. */
const MAX_BACKLOGS = 4

/** The backlogs of one group. */
export class GroupBacklogs {
  readonly #conflator: Conflator
  #backlogs: Backlog[] = []
  /** The backlog that starts with the publications of the current turn. */
  #ofThisTurn: Backlog | null = null

  constructor(conflator: Conflator) {
    this.#conflator = copying(conflator)
  }

  /** Adds the publications of a turn to all backlogs. Called before any `join` of the turn. */
  extend(publications: readonly Publication[]): void {
    this.#ofThisTurn = null
    for (const backlog of this.#backlogs) for (const publication of publications) backlog.add(publication)
  }

  /** Assigns a backlog to a subscription whose client has fallen behind. */
  join(subscription: Subscription, publications: readonly Publication[]): void {
    const backlog = this.#ofThisTurn ?? this.#newestIfTooMany() ?? this.#start(publications)
    backlog.readers++
    subscription.backlog = backlog
    subscription.outbox.backlogs++
    subscription.backlogStart = backlog.size - publications.length
  }

  leave(subscription: Subscription): void {
    const { backlog } = subscription
    if (backlog === null) return
    subscription.backlog = null
    subscription.outbox.backlogs--
    if (--backlog.readers === 0) this.#backlogs = this.#backlogs.filter((each) => each !== backlog)
  }

  #start(publications: readonly Publication[]): Backlog {
    const backlog = new Backlog(this.#conflator)
    for (const publication of publications) backlog.add(publication)
    this.#backlogs.push(backlog)
    this.#ofThisTurn = backlog
    return backlog
  }

  #newestIfTooMany(): Backlog | null {
    return this.#backlogs.length < MAX_BACKLOGS ? null : (this.#backlogs[this.#backlogs.length - 1] ?? null)
  }
}
