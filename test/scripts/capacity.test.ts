import { readFileSync } from 'node:fs'
import t from 'tap'
import { demandFrom, USAGE } from '../../scripts/lib/capacity/arguments.js'
import type { Costs } from '../../scripts/lib/capacity/costs.js'
import { DEFAULT_DEMAND, HEADROOM, planFor, spreadOf } from '../../scripts/lib/capacity/plan.js'
import { SCALING_PAGE, withCurrentPlans } from '../../scripts/lib/capacity/scaling-page.js'

const COSTS: Costs = {
  deliveryMicros: 10,
  publishMicros: 100,
  receiveMicros: 50,
  redisPublishMicros: 20,
  redisPushMicros: 5,
  connectMicros: 200,
  connectionKib: 10,
  kernelKib: 10,
  idleMib: 100
}

t.test('planFor', async (t) => {
  t.test('planFor uses one process without Redis for one building', async (t) => {
    const plan = planFor({ ...DEFAULT_DEMAND, connections: 500, floors: 10 }, COSTS)

    t.match(plan, { processes: 1, machines: 1, redisShards: 0, redisOutGbit: 0, spread: 1, deliveriesPerSecond: 500 })
  })

  t.test('planFor leaves half of every core unused', async (t) => {
    for (const connections of [1000, 30_000, 400_000, 5_000_000]) {
      const { coresUsed, processes } = planFor({ ...DEFAULT_DEMAND, connections, floors: connections / 20 }, COSTS)
      t.ok(coresUsed <= processes * HEADROOM, `${coresUsed} of ${processes}`)
    }
  })

  t.test('planFor uses no more processes than needed', async (t) => {
    const demand = { ...DEFAULT_DEMAND, connections: 10_000_000, floors: 500_000, cores: 32, memoryGib: 1000 }
    for (const isSorted of [true, false]) {
      const { coresUsed, processes } = planFor({ ...demand, isSorted, networkGbit: 1000 }, COSTS)
      t.ok(processes <= Math.ceil(coresUsed / HEADROOM) + 1, `${coresUsed} of ${processes}`)
    }
  })

  t.test('planFor uses no Redis for the processes of one machine', async (t) => {
    const plan = planFor({ ...DEFAULT_DEMAND, connections: 10_000, rate: 20, floors: 50, cores: 64 }, COSTS)

    t.ok(plan.processes > 1)
    t.match(plan, { machines: 1, redisShards: 0 })
  })

  t.test('planFor adds a spare machine above ten thousand connections', async (t) => {
    t.match(planFor({ ...DEFAULT_DEMAND, connections: 10_001, rate: 0.01 }, COSTS), {
      machines: 2,
      limit: 'one machine to spare'
    })
  })

  t.test('planFor names the limiting resource', async (t) => {
    const idle = { ...DEFAULT_DEMAND, connections: 1_000_000, floors: 1000, rate: 0.001, networkGbit: 1000 }
    t.equal(planFor({ ...idle, memoryGib: 1 }, COSTS).limit, 'memory')
    t.equal(planFor({ ...idle, rate: 1, networkGbit: 0.01 }, COSTS).limit, 'network')
    t.equal(planFor({ ...idle, rate: 10, memoryGib: 10_000 }, COSTS).limit, 'CPU')
  })

  t.test('planFor needs fewer Redis shards if the clients of a floor connect to the same process', async (t) => {
    const large = { ...DEFAULT_DEMAND, connections: 10_000_000, floors: 500_000 }
    const scattered = planFor(large, COSTS)
    const sorted = planFor({ ...large, isSorted: true }, COSTS)

    t.equal(sorted.spread, 1)
    t.ok(sorted.redisShards * 3 < scattered.redisShards, `${sorted.redisShards} and ${scattered.redisShards}`)
  })
})

t.test('spreadOf is the number of processes that have clients of a floor', async (t) => {
  const twenty = { ...DEFAULT_DEMAND, connections: 20, floors: 1 }
  t.equal(spreadOf(twenty, 1), 1)
  t.ok(spreadOf(twenty, 4) > 3.9)
  t.ok(spreadOf(twenty, 100_000) > 19.9)
  t.ok(spreadOf(twenty, 100_000) <= 20)
})

t.test('demandFrom', async (t) => {
  t.test('demandFrom accepts both argument forms and uses defaults for the others', async (t) => {
    t.same(demandFrom(['--connections', '7', '--rate=0.5', '--sorted']), {
      ...DEFAULT_DEMAND,
      connections: 7,
      rate: 0.5,
      isSorted: true
    })
    t.same(demandFrom([]), DEFAULT_DEMAND)
    t.match(USAGE, '--connections')
  })

  for (const wrong of [
    ['--connections'],
    ['--connections', '-1'],
    ['--connections', '0'],
    ['--connections', 'many'],
    ['--connections='],
    ['--rate', 'Infinity'],
    ['--rate', 'NaN'],
    ['--cores', '1e9'],
    ['--constructor', '1'],
    ['connections', '1'],
    ['--', '1'],
    ['--unknown']
  ]) {
    t.test(`demandFrom rejects ${wrong.join(' ')}`, async (t) => {
      t.throws(() => demandFrom(wrong))
    })
  }
})

t.test('docs/how-to/scale.md contains the current numbers', async (t) => {
  const page = readFileSync(SCALING_PAGE, 'utf8')
  t.equal(withCurrentPlans(page), page, 'run `npm run docs`')
})
