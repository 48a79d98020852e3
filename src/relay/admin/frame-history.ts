import type { Frame } from './contract.js'

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
