import type { Engine, EngineParts } from '../engine.js'
import { redisAddresses } from './address.js'
import { Bus } from './bus.js'
import { RedisNames } from './names.js'
import { RedisEngine } from './redis-engine.js'
import { FLEET_TIMES, type FleetTimes, RedisFleet } from './redis-fleet.js'
import { RedisPresence } from './redis-presence.js'
import { RedisUserConnections } from './redis-user-connections.js'

/** A Redis that is started together with the relay may take a while. */
const START_WITHIN_MS = 10_000

export interface RedisOptions {
  /** A comma list. */
  readonly url: string
  readonly prefix: string
  readonly presenceTtlMs: number
  readonly fleetTimes?: FleetTimes
  readonly startWithinMs?: number
}

export const buildRedisEngine = (
  { url, prefix, presenceTtlMs, fleetTimes = FLEET_TIMES, startWithinMs = START_WITHIN_MS }: RedisOptions,
  { nowMs, log, watch }: EngineParts
): Engine => {
  const bus = new Bus({ addresses: redisAddresses(url), names: new RedisNames(prefix), log, watch, startWithinMs })
  const engine = new RedisEngine(bus, nowMs)
  const presence = new RedisPresence(bus, presenceTtlMs)
  const userConnections = new RedisUserConnections(bus)
  return {
    broker: engine,
    history: engine,
    presence,
    fleet: new RedisFleet(bus, log, fleetTimes),
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
