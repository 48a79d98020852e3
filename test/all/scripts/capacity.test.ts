import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseCapacityArguments, USAGE } from '../../../scripts/lib/capacity/arguments.js'
import { type Costs, MEASURED } from '../../../scripts/lib/capacity/costs.js'
import { fitCpuCosts } from '../../../scripts/lib/capacity/fit.js'
import { readMachineFile, writeMachineFile } from '../../../scripts/lib/capacity/machine-file.js'
import { DEFAULT_DEMAND, HEADROOM, planFor, spreadOf } from '../../../scripts/lib/capacity/plan.js'
import { type CpuCosts, type RelayLoad, relayCores } from '../../../scripts/lib/capacity/relay-cpu.js'
import { relayMebibytes } from '../../../scripts/lib/capacity/relay-memory.js'
import { SCALING_PAGE, withCurrentPlans } from '../../../scripts/lib/capacity/scaling-page.js'

const COSTS: Costs = {
  publishMicros: 100,
  wakeMicros: 200,
  pauseMs: 2,
  deliveryMicros: 10,
  coldMicros: 7,
  byteNanos: 1,
  connectionMicros: 1,
  receiveMicros: 50,
  redisPublishMicros: 20,
  redisPushMicros: 5,
  connectMicros: 200,
  idleMib: 100,
  workMib: 50,
  connectionKib: 10,
  kernelKib: 10
}

t.test('planFor', async (t) => {
  t.test('planFor uses one process without Redis for one building', async (t) => {
    const plan = planFor({ ...DEFAULT_DEMAND, connections: 500, floors: 10 }, COSTS)

    t.match(plan, { processes: 1, machines: 1, redisShards: 0, redisOutGbit: 0, spread: 1, deliveriesPerSecond: 500 })
  })

  t.test('planFor leaves half of every core unused', async (t) => {
    for (const connections of [1000, 30_000, 400_000, 5_000_000]) {
      const plan = planFor({ ...DEFAULT_DEMAND, connections, floors: connections / 20 }, COSTS)
      const { coresUsed, coresAfterFailure, processes } = plan
      t.ok(coresUsed < coresAfterFailure && coresAfterFailure <= processes * HEADROOM, `${coresUsed} of ${processes}`)
    }
  })

  t.test('planFor uses no more processes than needed', async (t) => {
    const demand = { ...DEFAULT_DEMAND, connections: 10_000_000, floors: 500_000, cores: 32, memoryGib: 1000 }
    for (const isSorted of [true, false]) {
      const { coresAfterFailure, processes } = planFor({ ...demand, isSorted, networkGbit: 1000 }, COSTS)
      t.ok(processes <= Math.ceil(coresAfterFailure / HEADROOM) + 1, `${coresAfterFailure} of ${processes}`)
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

  t.test('planFor counts the clients that a failed machine leaves to the others', async (t) => {
    const large = { ...DEFAULT_DEMAND, connections: 1_000_000, floors: 50_000, cores: 1, returnSeconds: 30 }
    const { machines, processes, processConnections, restartSeconds, rollingRestartMinutes } = planFor(large, COSTS)
    t.equal(machines, processes)
    t.equal(processConnections, 1_000_000 / (processes - 1))
    // Each of its clients takes 200 µs, and half of every remaining core is free.
    const seconds = ((1_000_000 / machines) * 200e-6) / ((processes - 1) / 2)
    t.ok(Math.abs(restartSeconds / seconds - 1) < 1e-9)
    t.equal(rollingRestartMinutes, machines / 2)
  })

  t.test('planFor lets a single machine get its own clients back', async (t) => {
    const { processConnections, restartSeconds } = planFor({ ...DEFAULT_DEMAND, connections: 500, floors: 10 }, COSTS)
    t.same([processConnections, restartSeconds], [500, (500 * 200) / 1e6 / 0.5])
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

const LOAD: RelayLoad = {
  connections: 1000,
  publishesPerSecond: 20,
  receivedPerSecond: 0,
  deliveriesPerSecond: 20_000,
  deliveryPauseMs: 50,
  payloadBytes: 2500
}

t.test('relayCores', async (t) => {
  t.test('relayCores adds publish calls, wake-ups, writes, cold connections, bytes and pings', async (t) => {
    const wakes = (20 * 50) / (50 + COSTS.pauseMs)
    const cold = (7 * 50) / (50 + 300)
    const micros = 20 * 100 + wakes * 200 + 20_000 * (10 + cold + 2.5) + 1000
    t.ok(Math.abs(relayCores(LOAD, COSTS) - micros / 1e6) < 1e-9)
  })

  t.test('relayCores has no wake-ups without publications', async (t) => {
    const idle = { ...LOAD, publishesPerSecond: 0, deliveriesPerSecond: 0, deliveryPauseMs: Number.POSITIVE_INFINITY }
    t.equal(relayCores(idle, COSTS), 0.001)
  })

  t.test('relayCores adds wake-ups, but no publish calls, for received publications', async (t) => {
    const received = { ...LOAD, publishesPerSecond: 0, receivedPerSecond: 20 }
    t.ok(Math.abs(relayCores(LOAD, COSTS) - relayCores(received, COSTS) - (20 * 100) / 1e6) < 1e-9)
  })

  t.test('a publish call costs less at a higher rate', async (t) => {
    const perCall = (publishesPerSecond: number): number =>
      relayCores({ ...LOAD, connections: 0, publishesPerSecond, deliveriesPerSecond: 0 }, COSTS) / publishesPerSecond
    t.ok(perCall(10) > perCall(100) && perCall(100) > perCall(1000))
  })

  t.test('a delivery costs more after a long pause of its connection', async (t) => {
    const cores = (deliveryPauseMs: number): number => relayCores({ ...LOAD, deliveryPauseMs }, COSTS)
    t.ok(Math.abs(cores(1e9) - cores(1e-6) - (20_000 * COSTS.coldMicros) / 1e6) < 1e-6)
    t.ok(cores(1000) > cores(50))
  })
})

t.test('relayMebibytes adds the process, its connections and its history', async (t) => {
  t.equal(relayMebibytes({ connections: 1024, historyBytes: 3 * 2 ** 20 }, COSTS), 100 + 50 + 10 + 3)
})

const loadOf = (connections: number, rate: number, payloadBytes = 2500): RelayLoad => ({
  ...LOAD,
  connections,
  publishesPerSecond: rate,
  deliveriesPerSecond: connections * rate,
  deliveryPauseMs: 1000 / rate,
  payloadBytes
})

/** Short, without pings. */
const busy = (...load: Parameters<typeof loadOf>): RelayLoad => ({ ...loadOf(...load), connections: 0 })

const CALIBRATION = [
  ...[20, 100, 300, 1000].map((rate) => busy(1, rate)),
  loadOf(5000, 0),
  busy(300, 20),
  busy(2000, 1),
  busy(300, 20, 20_000)
]

t.test('fitCpuCosts', async (t) => {
  const costs: CpuCosts = {
    publishMicros: 60,
    wakeMicros: 300,
    pauseMs: 0.1 * 1.33 ** 10,
    deliveryMicros: 8,
    coldMicros: 6,
    byteNanos: 0.4,
    connectionMicros: 1.5
  }

  t.test('fitCpuCosts finds the costs behind exact readings', async (t) => {
    const fitted = fitCpuCosts(CALIBRATION.map((load) => ({ load, cores: relayCores(load, costs) })))
    for (const name of Object.keys(costs) as (keyof CpuCosts)[])
      t.ok(Math.abs(fitted[name] / costs[name] - 1) < 0.001, `${name}: ${fitted[name]}`)
  })

  t.test('fitCpuCosts predicts other loads from readings that are up to 5 % off', async (t) => {
    const readings = CALIBRATION.map((load, index) => ({
      load,
      cores: relayCores(load, costs) * (1 + ((index % 3) - 1) * 0.05)
    }))
    const fitted = fitCpuCosts(readings)
    t.ok(Math.abs(relayCores(LOAD, fitted) / relayCores(LOAD, costs) - 1) < 0.1)
  })

  t.test('fitCpuCosts leaves out a cost that no load has', async (t) => {
    const loads = CALIBRATION.filter(({ connections }) => connections === 0)
    const fitted = fitCpuCosts(loads.map((load) => ({ load, cores: relayCores(load, costs) })))
    t.equal(fitted.connectionMicros, 0)
    t.ok(Math.abs(fitted.deliveryMicros / costs.deliveryMicros - 1) < 0.001)
  })

  t.test('fitCpuCosts returns no negative costs', async (t) => {
    const cheaper = CALIBRATION.map((load) => ({
      load,
      cores: relayCores(load, costs) / (load.payloadBytes > 2500 ? 4 : 1)
    }))
    const fitted = fitCpuCosts(cheaper)
    for (const cost of Object.values(fitted)) t.ok(cost >= 0)
    t.ok(fitted.publishMicros + fitted.wakeMicros > 0)
  })
})

t.test('readMachineFile', async (t) => {
  const fileWith = (text: string): string => {
    const file = join(t.testdir(), 'machine.json')
    writeFileSync(file, text)
    return file
  }

  const { receiveMicros, redisPublishMicros, redisPushMicros, kernelKib, ...measured } = MEASURED

  t.test(
    'readMachineFile reads the costs of writeMachineFile and estimates the others by the time of a connect',
    async (t) => {
      const file = join(t.testdir(), 'machine.json')
      writeMachineFile(file, { ...measured, deliveryMicros: 12.3456, connectMicros: 3 * measured.connectMicros })
      t.same(readMachineFile(file), {
        ...measured,
        deliveryMicros: 12.3,
        connectMicros: 3 * measured.connectMicros,
        receiveMicros: 3 * receiveMicros,
        redisPublishMicros: 3 * redisPublishMicros,
        redisPushMicros: 3 * redisPushMicros,
        kernelKib
      })
    }
  )

  t.test('readMachineFile prefers costs of the file to estimates', async (t) => {
    const costs = { ...measured, connectMicros: 1000, redisPushMicros: 9 }
    t.equal(readMachineFile(fileWith(JSON.stringify(costs))).redisPushMicros, 9)
  })

  t.test('readMachineFile rejects a file of an older version', async (t) => {
    const { coldMicros, ...older } = measured
    t.throws(() => readMachineFile(fileWith(JSON.stringify(older))), { message: /machine\.json has no coldMicros\./ })
  })

  for (const text of ['', '[]', 'null', '{"deliveryMicros":"9"}', '{"deliveryMicros":-1}', '{"toString":1}', '{}']) {
    t.test(`readMachineFile rejects ${text === '' ? 'an empty file' : text}`, async (t) => {
      t.throws(() => readMachineFile(fileWith(text)), { message: /machine\.json/ })
    })
  }

  t.test('readMachineFile rejects a missing file', async (t) => {
    t.throws(() => readMachineFile(join(t.testdir(), 'missing.json')), { message: /missing\.json cannot be read/ })
  })
})

t.test('parseCapacityArguments', async (t) => {
  t.test('parseCapacityArguments accepts both argument forms and uses defaults for the others', async (t) => {
    t.same(parseCapacityArguments(['--connections', '7', '--rate=0.5', '--sorted', '--machine', 'm.json']), {
      demand: { ...DEFAULT_DEMAND, connections: 7, rate: 0.5, isSorted: true },
      machineFile: 'm.json'
    })
    t.same(parseCapacityArguments([]), { demand: DEFAULT_DEMAND, machineFile: null })
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
    ['--return', '0.5'],
    ['--cores', '1e9'],
    ['--history', '-1'],
    ['--machine'],
    ['--constructor', '1'],
    ['connections', '1'],
    ['--', '1'],
    ['--unknown']
  ]) {
    t.test(`parseCapacityArguments rejects ${wrong.join(' ')}`, async (t) => {
      t.throws(() => parseCapacityArguments(wrong))
    })
  }
})

t.test('docs/how-to/scale.md contains the current numbers', async (t) => {
  const page = readFileSync(SCALING_PAGE, 'utf8')
  t.equal(withCurrentPlans(page), page, 'run `npm run docs`')
})
