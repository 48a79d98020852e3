import { randomBytes } from 'node:crypto'
import { parseRedisUrl } from '../../../shared/redis-address.js'
import type { Engine, EngineDependencies } from '../../core/engine.js'
import { type BackgroundDependencies, runInBackground } from '../../core/session/context.js'
import { RedisChannelStates } from './channel-states.js'
import { RedisKeys } from './keys.js'
import { RedisMaps } from './maps.js'
import { NODE_TIMINGS, type NodeTimings, RedisNodeCluster } from './nodes.js'
import { RedisPresence } from './presence.js'
import { RedisEngine } from './redis-engine.js'
import { ShardRouter } from './shard-router.js'
import { SlotTags } from './slot-tags.js'
import { RedisUserConnections } from './user-connections.js'
import { RedisUserRates } from './user-rates.js'

/** Long enough for a Redis that is started together with the relay. */
const START_TIMEOUT_MS = 10_000
/** As long as a command may take. */
const SLOT_TIMEOUT_MS = 2_000

export interface RedisOptions {
  /** Validated: see `redisUrlError`. */
  readonly url: string
  readonly prefix: string
  readonly presenceTtlMs: number
  readonly nodeTimings?: NodeTimings
  readonly startTimeoutMs?: number
  readonly slotTimeoutMs?: number
}

export const buildRedisEngine = (
  {
    url,
    prefix,
    presenceTtlMs,
    nodeTimings = NODE_TIMINGS,
    startTimeoutMs = START_TIMEOUT_MS,
    slotTimeoutMs = SLOT_TIMEOUT_MS
  }: RedisOptions,
  { nowMs, log, metrics }: EngineDependencies
): Engine => {
  const router = new ShardRouter({
    addresses: parseRedisUrl(url),
    keys: new RedisKeys(prefix),
    log,
    metrics,
    startTimeoutMs,
    slotTimeoutMs
  })
  const newEpoch = epochNames()
  const tags = new SlotTags(router)
  const engine = new RedisEngine(router, tags, nowMs, newEpoch)
  const background: BackgroundDependencies = { log, metrics }
  const channelStates = new RedisChannelStates(router, presenceTtlMs, background)
  const presence = new RedisPresence(router, presenceTtlMs, channelStates, background)
  const userConnections = new RedisUserConnections(router, background)
  return {
    broker: engine,
    history: engine,
    maps: new RedisMaps(router, tags, nowMs, newEpoch),
    presence,
    cluster: new RedisNodeCluster(router, { log, metrics }, nodeTimings),
    userConnections,
    userRates: new RedisUserRates(router, metrics),
    channelStates,
    isShared: true,
    get isReady() {
      return router.isReady
    },
    probeChannels: (name) => router.channelOnEachShard(name),
    sweep: () => runInBackground(background, () => channelStates.sweep()),
    close: async () => {
      presence.close()
      await channelStates.close()
      userConnections.close()
      await engine.close()
    }
  }
}

/** Names epochs, different from those of all other nodes. */
const epochNames = (): (() => string) => {
  const prefix = randomBytes(6).toString('base64url')
  let count = 0
  return () => `${prefix}${(++count).toString(36)}`
}
