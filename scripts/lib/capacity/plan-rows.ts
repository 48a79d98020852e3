import type { Demand, Plan } from './plan.js'

const whole = (value: number): string => Math.ceil(value).toLocaleString('en-US')
const rough = (value: number): string =>
  value >= 100 ? whole(value) : value.toLocaleString('en-US', { maximumSignificantDigits: 2 })

/** The demand and the plan as rows of a table. */
export const planRows = (demand: Demand, plan: Plan): readonly (readonly [name: string, value: string])[] => [
  ['connections', whole(demand.connections)],
  ['floors', whole(demand.floors)],
  ['batches per floor and second', rough(demand.rate)],
  ['bytes of a batch', whole(demand.payloadBytes)],
  ['batches in the history of a floor', whole(demand.history)],
  ['a machine', `${demand.cores} cores, ${demand.memoryGib} GiB, ${demand.networkGbit} Gbit/s`],
  ['publishes per second', whole(plan.publishesPerSecond)],
  ['deliveries per second', whole(plan.deliveriesPerSecond)],
  ['relay processes a publication reaches', rough(plan.spread)],
  ['cores busy', rough(plan.coresUsed)],
  ['cores busy while clients connect again', rough(plan.coresAfterFailure)],
  ['connections of a process while a machine is down', whole(plan.processConnections)],
  ['clients of a machine connected again, at the earliest', `${rough(plan.restartSeconds)} s`],
  ['rolling restart of all machines', `${rough(plan.rollingRestartMinutes)} min`],
  ['memory', `${rough(plan.memoryGib)} GiB`],
  ['history, in the relay or in Redis', `${rough(plan.historyGib)} GiB`],
  ['network out', `${rough(plan.outGbit)} Gbit/s`],
  ['**relay processes**', whole(plan.processes)],
  ['**machines**', `${whole(plan.machines)} (${plan.limit})`],
  ['**Redis shards**', plan.redisShards === 0 ? 'none' : whole(plan.redisShards)],
  ['Redis network out', `${rough(plan.redisOutGbit)} Gbit/s`]
]
