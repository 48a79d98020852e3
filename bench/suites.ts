import { gatewaySuite } from './gateway/suite.js'
import type { Suite } from './harness/suite.js'
import { latencySuite } from './latency.js'
import { capacitySuite } from './relay/capacity.js'
import { redisScaleSuite } from './relay/redis-scale.js'
import { scaleSuite } from './relay/scale.js'
import { stormSuite } from './relay/storm.js'
import { relaySuite } from './relay/suite.js'

/** The suites of `npm run bench`, in the order of the report. */
export const SUITES: Readonly<Record<string, Suite>> = {
  gateway: gatewaySuite,
  relay: relaySuite,
  latency: latencySuite,
  storm: stormSuite,
  capacity: capacitySuite,
  scale: scaleSuite,
  'redis-scale': redisScaleSuite
}
