import type { RedisLink } from '../redis-link.js'
import type { Sealer } from './sealer.js'
import { LATE_MS } from './session-memory.js'

/**
 * Longer than the work can take, which is up to four answers of a provider and one of the backend, five seconds each: who
 * holds the turn for longer has died with it.
 */
const TURN_MS = 30_000
const POLL_MS = 25

/** Work that several gateways are asked for, and one of them does. */
export class RedisTurns {
  readonly #link: RedisLink
  readonly #prefix: string
  readonly #sealer: Sealer

  constructor(link: RedisLink, prefix: string, sealer: Sealer) {
    this.#link = link
    this.#prefix = prefix
    this.#sealer = sealer
  }

  /** The first to come does the work and leaves its result for the others, who look for it until then. */
  async once<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const [turnKey, resultKey] = [`${this.#prefix}turn:${key}`, `${this.#prefix}result:${key}`]
    const deadline = performance.now() + TURN_MS
    while (performance.now() < deadline) {
      const left = await this.#link.orElse((redis) => redis.get(resultKey), undefined)
      if (left === undefined) return work()
      const opened = left === null ? null : await this.#sealer.open(left)
      if (opened !== null) return opened.result as Result
      const mine = await this.#link.orElse((redis) => redis.set(turnKey, '1', 'PX', TURN_MS, 'NX'), undefined)
      if (mine === undefined) return work()
      if (mine === 'OK') return this.#doAndLeave(turnKey, resultKey, work)
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    return work()
  }

  async #doAndLeave<Result>(turnKey: string, resultKey: string, work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work()
      const sealed = await this.#sealer.seal({ result }, Math.ceil(LATE_MS / 1000))
      await this.#link.orElse((redis) => redis.set(resultKey, sealed, 'PX', LATE_MS), null)
      return result
    } finally {
      await this.#link.orElse((redis) => redis.del(turnKey), 0)
    }
  }
}
