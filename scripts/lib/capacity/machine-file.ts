import { readFileSync, writeFileSync } from 'node:fs'
import { messageOf } from '../../../src/shared/error-message.js'
import { isObject } from '../../../src/shared/is-object.js'
import { UserError } from '../command.js'
import { type Costs, MEASURED } from './costs.js'

/** Reads the costs of a machine. Costs that the file does not have are those of the documentation. */
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
  return { ...MEASURED, ...costs }
}

export const writeMachineFile = (file: string, costs: Partial<Costs>): void => {
  const rounded = Object.entries(costs).map(([name, value]) => [name, Number(value.toPrecision(3))])
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`)
}
