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

t.test('the plan for a service', async (t) => {
  t.test('of one building is one process, without Redis', async (t) => {
    const plan = planFor({ ...DEFAULT_DEMAND, connections: 500, floors: 10 }, COSTS)

    t.match(plan, { processes: 1, machines: 1, redisShards: 0, redisOutGbit: 0, spread: 1, deliveriesPerSecond: 500 })
  })

  t.test('keeps half of every core free', async (t) => {
    for (const connections of [1000, 30_000, 400_000, 5_000_000]) {
      const { coresUsed, processes } = planFor({ ...DEFAULT_DEMAND, connections, floors: connections / 20 }, COSTS)
      t.ok(coresUsed <= processes * HEADROOM, `${coresUsed} of ${processes}`)
    }
  })

  t.test('needs no Redis between the processes of one machine', async (t) => {
    const plan = planFor({ ...DEFAULT_DEMAND, connections: 10_000, rate: 20, floors: 50, cores: 64 }, COSTS)

    t.ok(plan.processes > 1)
    t.match(plan, { machines: 1, redisShards: 0 })
  })

  t.test('has a machine to spare above ten thousand connections', async (t) => {
    t.match(planFor({ ...DEFAULT_DEMAND, connections: 10_001, rate: 0.01 }, COSTS), {
      machines: 2,
      limit: 'one machine to spare'
    })
  })

  t.test('says what decides', async (t) => {
    const idle = { ...DEFAULT_DEMAND, connections: 1_000_000, floors: 1000, rate: 0.001, networkGbit: 1000 }
    t.equal(planFor({ ...idle, memoryGib: 1 }, COSTS).limit, 'memory')
    t.equal(planFor({ ...idle, rate: 1, networkGbit: 0.01 }, COSTS).limit, 'network')
    t.equal(planFor({ ...idle, rate: 10, memoryGib: 10_000 }, COSTS).limit, 'CPU')
  })

  t.test('takes fewer Redis shards where the clients of a floor meet', async (t) => {
    const large = { ...DEFAULT_DEMAND, connections: 10_000_000, floors: 500_000 }
    const scattered = planFor(large, COSTS)
    const sorted = planFor({ ...large, isSorted: true }, COSTS)

    t.equal(sorted.spread, 1)
    t.ok(sorted.redisShards * 3 < scattered.redisShards, `${sorted.redisShards} and ${scattered.redisShards}`)
  })
})

t.test('a publication reaches as many processes as the clients of its floor hit', async (t) => {
  const twenty = { ...DEFAULT_DEMAND, connections: 20, floors: 1 }
  t.equal(spreadOf(twenty, 1), 1)
  t.ok(spreadOf(twenty, 4) > 3.9)
  t.ok(spreadOf(twenty, 100_000) > 19.9)
  t.ok(spreadOf(twenty, 100_000) <= 20)
})

t.test('the arguments', async (t) => {
  t.test('may be given both ways, and the rest stays as usual', async (t) => {
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

t.test('docs/how-to/scale.md has the numbers that the code has', async (t) => {
  const page = readFileSync(SCALING_PAGE, 'utf8')
  t.equal(withCurrentPlans(page), page, 'run `npm run docs`')
})
