import type { Engine, EngineDependencies } from '../engine.js'
import { redisAddresses } from './address.js'
import { RedisBus } from './bus.js'
import { CLUSTER_TIMINGS, type ClusterTimings, RedisCluster } from './cluster.js'
import { RedisEngine } from './engine.js'
import { RedisNames } from './names.js'
import { RedisPresence } from './presence.js'
import { RedisUserConnections } from './user-connections.js'

/** A Redis that is started together with the relay may take a while. */
const START_WITHIN_MS = 10_000

export interface RedisOptions {
  /** A comma list. */
  readonly url: string
  readonly prefix: string
  readonly presenceTtlMs: number
  readonly clusterTimings?: ClusterTimings
  readonly startWithinMs?: number
}

export const buildRedisEngine = (
  {
    url,
    prefix,
    presenceTtlMs,
    clusterTimings: fleetTimes = CLUSTER_TIMINGS,
    startWithinMs = START_WITHIN_MS
  }: RedisOptions,
  { nowMs, log, metrics }: EngineDependencies
): Engine => {
  const bus = new RedisBus({
    addresses: redisAddresses(url),
    names: new RedisNames(prefix),
    log,
    watch: metrics,
    startWithinMs
  })
  const engine = new RedisEngine(bus, nowMs)
  const presence = new RedisPresence(bus, presenceTtlMs)
  const userConnections = new RedisUserConnections(bus)
  return {
    broker: engine,
    history: engine,
    presence,
    cluster: new RedisCluster(bus, log, fleetTimes),
    userConnections,
    get isReady() {
      return bus.isReady
    },
    sweep: () => undefined,
    close: () => {
      presence.close()
      userConnections.close()
      engine.close()
    }
  }
}
