import t, { type Test } from 'tap'
import { environment } from '../../helper/environment.js'
import { startRedis } from '../../helper/redis.js'
import { startRedisCluster } from '../../helper/redis-cluster.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { startWorkers } from '../../helper/relay-workers.js'
import { runModel } from '../model-runs.js'
import { interleavings, MAP_NAMESPACES, runInterleaving, type World } from './map-model.js'

const LENGTH = { min: 6, max: 30 }

const runAll = (t: Test, world: World): Promise<void> =>
  runModel(t, interleavings(LENGTH), { runs: environment.mapModelRuns, parallel: 20 }, (each) =>
    runInterleaving(t, world, each)
  )

/** Calls go to the relays in turn. */
const worldOf = (edges: readonly EdgeRelay[]): World => {
  let calls = 0
  return {
    ports: edges.map(({ port }) => port),
    api: async (method, params) => {
      const edge = edges[++calls % edges.length] as EdgeRelay
      const { body } = await edge.api(method, params)
      const reply = JSON.parse(body)
      if (reply.error !== undefined) throw new Error(`${method}: ${body}`)
      return reply.result
    }
  }
}

t.test('maps at a relay in one process agree with the model', async (t) => {
  await runAll(t, worldOf([await startRelay(t, MAP_NAMESPACES)]))
})

t.test('maps at two workers agree with the model', async (t) => {
  const workers = await startWorkers(t, 2, MAP_NAMESPACES)
  await runAll(t, { ports: [workers.port], api: (method, params) => workers.api(method, params) })
})

t.test('maps at two relays on one Redis agree with the model', async (t) => {
  const { url } = await startRedis(t)
  const start = () => startRelay(t, MAP_NAMESPACES, { RELAY_ENGINE: 'redis', REDIS_URL: url })
  await runAll(t, worldOf([await start(), await start()]))
})

t.test('maps at two relays on a Redis Cluster agree with the model', async (t) => {
  const { url } = await startRedisCluster(t)
  const start = () => startRelay(t, MAP_NAMESPACES, { RELAY_ENGINE: 'redis', REDIS_URL: url })
  await runAll(t, worldOf([await start(), await start()]))
})
