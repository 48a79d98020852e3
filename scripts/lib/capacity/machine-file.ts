import { readFileSync, writeFileSync } from 'node:fs'
import { messageOf } from '../../../src/shared/error-message.js'
import { isObject } from '../../../src/shared/is-object.js'
import { UserError } from '../command.js'
import { type Costs, MEASURED } from './costs.js'
import { COST_NAMES } from './relay-cpu.js'

/** `npm run bench -- capacity` measures them together, so they cannot be mixed with those of another machine or version. */
const REQUIRED = [...COST_NAMES, 'pauseMs', 'connectMicros', 'idleMib', 'workMib', 'connectionKib'] as const

/** Other CPU costs: without a measurement they grow as the time of a connect does. */
const ESTIMATED = ['receiveMicros', 'redisPublishMicros', 'redisPushMicros'] as const

/** Reads the costs of a machine. */
export const readMachineFile = (file: string): Costs => {
  let costs: unknown
  try {
    costs = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UserError(`${file} cannot be read: ${messageOf(error)}`)
  }
  if (!isObject(costs)) throw new UserError(`${file} must contain a JSON object with costs`)
  for (const [name, value] of Object.entries(costs)) {
    if (!Object.hasOwn(MEASURED, name)) throw new UserError(`${file}: there is no cost ${name}`)
    if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
      throw new UserError(`${file}: ${name} must be a number from 0 up`)
  }
  const missing = REQUIRED.filter((name) => !Object.hasOwn(costs, name))
  if (missing.length > 0)
    throw new UserError(
      `${file} has no ${missing.join(', ')}. Write it again: npm run bench -- capacity --machine ${file}`
    )
  const merged: Costs = { ...MEASURED, ...costs }
  const slowness = merged.connectMicros / MEASURED.connectMicros
  const estimates = ESTIMATED.filter((name) => !Object.hasOwn(costs, name)).map((name) => [
    name,
    MEASURED[name] * slowness
  ])
  return { ...merged, ...Object.fromEntries(estimates) }
}

export const writeMachineFile = (file: string, costs: Partial<Costs>): void => {
  const rounded = Object.entries(costs).map(([name, value]) => [name, Number(value.toPrecision(3))])
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`)
}
