import { required } from '../../helper/required.js'

/** A seeded generator (mulberry32), so that a run can be repeated with the same sequence of faults. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, not including, 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1))
  }

  pick<T>(list: readonly T[]): T {
    const item = list[this.whole(0, list.length - 1)]
    if (item === undefined) throw new Error('an empty list has nothing to pick')
    return item
  }

  shuffled<T>(list: readonly T[]): T[] {
    const copy = [...list]
    for (let last = copy.length - 1; last > 0; last--) {
      const other = this.whole(0, last)
      const moved = required(copy[last])
      copy[last] = required(copy[other])
      copy[other] = moved
    }
    return copy
  }

  /** `count` different items, or all of a shorter list. */
  some<T>(list: readonly T[], count: number): T[] {
    return this.shuffled(list).slice(0, count)
  }

  /** A generator of its own for a part that runs concurrently: its sequence does not depend on the timing of the others. */
  fork(): Random {
    return new Random(Math.floor(this.fraction() * 2 ** 32))
  }
}
