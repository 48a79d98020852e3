import type { Redis } from 'ioredis'

/** Holds back what is written to a connection until the turn of the event loop ends: a burst leaves in one write. */
export class TurnCork {
  readonly #redis: Redis
  readonly #turnEnds: () => void
  #isCorked = false

  /** Before what was held back leaves, `turnEnds` may add to it. */
  constructor(redis: Redis, turnEnds: () => void = () => undefined) {
    this.#redis = redis
    this.#turnEnds = turnEnds
  }

  hold(): void {
    if (this.#isCorked) return
    const { stream } = this.#redis
    // There is none before the first connection.
    if (stream === undefined) return
    this.#isCorked = true
    stream.cork()
    setImmediate(() => {
      this.#turnEnds()
      this.#isCorked = false
      stream.uncork()
    })
  }
}
