import type { Position } from '../publication.js'

/** State at the start of a position check, taken before the stream is read. */
export interface PositionCheck {
  readonly possibleGaps: number
  readonly delivered: Position
}

const NONE = -1

/** Whether deliveries of a channel were lost: where it may be so, and what comparisons with the end of its stream say. */
export class GapChecks {
  /** The delivered offset at the last check, if the stream was ahead of it. */
  #suspectOffset = NONE
  /** How often deliveries may have been lost, and how many of these times a check has covered. */
  #possibleGaps = 0
  #checkedGaps = 0

  mark(): void {
    this.#possibleGaps++
  }

  get mayHaveGap(): boolean {
    return this.#possibleGaps > this.#checkedGaps
  }

  /** All marks up to now are covered. */
  clear(): void {
    this.#checkedGaps = this.#possibleGaps
  }

  start(delivered: Position): PositionCheck {
    return { possibleGaps: this.#possibleGaps, delivered }
  }

  /**
   * Compares the position that is delivered now with the end of the stream, to find losses that no later publication reveals. A
   * publication in transit looks like a loss too, so a difference counts only if two checks in a row find it or if a gap is
   * likely. A gap that is marked after the stream was read stays marked, and the next check follows at once.
   */
  finish(end: Position, now: Position, { possibleGaps, delivered }: PositionCheck): boolean {
    const isBehind = end.epoch !== now.epoch || end.offset > now.offset
    // The stream lost publications that were already delivered, and would reuse their offsets.
    const hasGoneBack = end.epoch === delivered.epoch && end.offset < delivered.offset
    const isCertain = hasGoneBack || possibleGaps > this.#checkedGaps || this.#suspectOffset === now.offset
    this.#checkedGaps = Math.max(this.#checkedGaps, possibleGaps)
    const isLoss = isCertain && (isBehind || hasGoneBack)
    this.#suspectOffset = isBehind && !isLoss ? now.offset : NONE
    return isLoss
  }
}
