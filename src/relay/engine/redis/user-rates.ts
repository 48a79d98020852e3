import { withTimeout } from '../../../shared/with-timeout.js'
import type { Bucket, EngineMetrics, UserRates } from '../../core/engine.js'
import type { MaybePromise } from '../../core/maybe-promise.js'
import { MemoryUserRates } from '../memory-user-rates.js'
import { stringListReply } from './connection.js'
import { USER_RATES_TAKE } from './lease-scripts.js'
import type { Shard } from './shard.js'
import type { ShardRouter } from './shard-router.js'

/** A command of a client does not wait longer for its limits. */
const TIMEOUT_MS = 1_000
/** After a failure, commands do not wait for the same server again until then. */
const RETRY_MS = 1_000

/** Token buckets that all nodes on a Redis share. While a server is unavailable or slow, this process counts alone. */
export class RedisUserRates implements UserRates {
  readonly #router: ShardRouter
  readonly #metrics: EngineMetrics
  readonly #local = new MemoryUserRates(() => performance.now())
  readonly #retryAt = new WeakMap<Shard, number>()

  constructor(router: ShardRouter, metrics: EngineMetrics) {
    this.#router = router
    this.#metrics = metrics
  }

  take(user: string, buckets: readonly Bucket[]): MaybePromise<boolean> {
    const shard = this.#router.findShard(user)
    const isUsable = shard?.commands.isOpen === true && performance.now() >= (this.#retryAt.get(shard) ?? 0)
    return isUsable ? this.#takeShared(shard, user, buckets) : this.#takeLocal(user, buckets)
  }

  async #takeShared(shard: Shard, user: string, buckets: readonly Bucket[]): Promise<boolean> {
    const costs = buckets.map(microsecondsOf)
    const keys = buckets.map(({ name }) => this.#router.keys.userRate(user, name))
    const args = costs.flatMap(({ token, full }) => [String(token), String(full)])
    const taking = this.#router.runScript(user, USER_RATES_TAKE, keys, () => args).then(stringListReply)
    const waits = await withTimeout(TIMEOUT_MS, taking)
    if (waits !== null) return costs.every(({ token, full }, index) => Number(waits[index]) + token <= full + 1)
    this.#retryAt.set(shard, performance.now() + RETRY_MS)
    return this.#takeLocal(user, buckets)
  }

  #takeLocal(user: string, buckets: readonly Bucket[]): boolean {
    this.#metrics.userRateCountedLocally()
    return this.#local.take(user, buckets)
  }
}

/** Rounded so that a full bucket has at least `rate` tokens. */
const microsecondsOf = ({ rate, intervalMs }: Bucket): { readonly token: number; readonly full: number } => ({
  token: Math.max(1, Math.floor((intervalMs * 1000) / rate)),
  full: Math.round(intervalMs * 1000)
})
