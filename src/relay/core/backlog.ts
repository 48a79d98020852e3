import type { Publication } from './broker.js'
import type { Conflation, Conflator } from './conflate.js'

/** Publications that became one, or one that has not the shape to be merged. */
interface Part {
  readonly conflation: Conflation | null
  newest: Publication
  /** How many publications there were up to the newest. */
  end: number
}

/**
 * What readers who fell behind in the same turn wait for: the publications of one channel, merged so that they hold the
 * newest entry of every key. Shared by all of them, so that ten slow readers cost what one costs.
 */
export class Backlog {
  readonly #conflator: Conflator
  readonly #parts: Part[] = []
  #lengthBefore = 0
  /** How many publications it stands for. */
  size = 0
  /** How many wait for it. */
  readers = 0

  constructor(conflator: Conflator) {
    this.#conflator = conflator
  }

  add(publication: Publication): void {
    this.size++
    const last = this.#parts[this.#parts.length - 1]
    if (last?.conflation?.add(publication.data)) {
      // One that is not kept has no place; the client's goes on from those before it all the same.
      last.newest = publication.offset > 0 ? publication : { ...publication, offset: last.newest.offset }
      last.end = this.size
      return
    }
    if (last !== undefined) this.#lengthBefore += lengthOf(last)
    const conflation = this.#conflator.begin()
    const isMerged = conflation.add(publication.data)
    this.#parts.push({ conflation: isMerged ? conflation : null, newest: publication, end: this.size })
  }

  /** Characters of all that waits. */
  get length(): number {
    const last = this.#parts[this.#parts.length - 1]
    return last === undefined ? 0 : this.#lengthBefore + lengthOf(last)
  }

  /**
   * In order, as few as can be. Each has the offset of the newest one that it stands for. Whoever had the first `known` of
   * them gets none that stands for those alone.
   */
  publications(known: number): readonly Publication[] {
    return this.#parts
      .filter(({ end }) => end > known)
      .map(({ conflation, newest }) => (conflation === null ? newest : { ...newest, data: conflation.toJson() }))
  }
}

const lengthOf = ({ conflation, newest }: Part): number => conflation?.length ?? newest.data.length
