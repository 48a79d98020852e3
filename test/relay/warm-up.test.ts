import { queryObjects } from 'node:v8'
import t from 'tap'
import { Relay } from '../../src/relay/core/relay.js'
import { warmUp } from '../../src/relay/warm-up.js'
import { createLogger } from '../../src/shared/logger.js'
import { monotonicMs } from '../../src/shared/monotonic.js'
import { eventually } from '../helper/eventually.js'

t.test('the relay of the warm-up does not stay in memory', async () => {
  // Counts the instances that are left after a garbage collection, also those of other files in this process.
  const before = queryObjects(Relay)
  await warmUp(createLogger({ name: 'test', level: 'silent' }), monotonicMs)

  await eventually(() => queryObjects(Relay) <= before)
})
