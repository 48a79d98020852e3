import fc from 'fast-check'
import t, { type Test } from 'tap'
import { environment } from '../../helper/environment.js'
import { startRedis } from '../../helper/redis.js'
import { startRedisCluster } from '../../helper/redis-cluster.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { startWorkers } from '../../helper/relay-workers.js'
import { interleavings, MAP_NAMESPACES, runInterleaving, type World } from './map-model.js'

const PARALLEL = 20
const RUNS = environment.mapModelRuns
const LENGTH = { min: 6, max: 30 }

const runAll = async (t: Test, world: World): Promise<void> => {
  const seed = environment.modelSeed ?? Math.floor(Math.random() * 2 ** 31)
  const waiting = fc.sample(interleavings(LENGTH), { numRuns: RUNS, seed })
  const failures: string[] = []
  const worker = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined && failures.length === 0; next = waiting.pop()) {
      const difference = await runInterleaving(t, world, next)
      if (difference !== null) failures.push(`${difference} after ${JSON.stringify(next)}`)
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker))

  t.same(failures.slice(0, 3), [], `${RUNS} interleavings agree with the model, MODEL_SEED=${seed}`)
}

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
