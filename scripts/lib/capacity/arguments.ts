import { parseArgs } from 'node:util'
import { UsageError } from '../command.js'
import { DEFAULT_DEMAND, type Demand } from './plan.js'

type NumberName = { [Name in keyof Demand]: Demand[Name] extends number ? Name : never }[keyof Demand]

interface Option {
  readonly name: NumberName
  readonly description: string
  /** Excluded if it is 0, the default. */
  readonly min?: number
  readonly max: number
}

const OPTIONS: Readonly<Record<string, Option>> = {
  connections: { name: 'connections', description: 'browsers at the same time', max: 1e10 },
  floors: { name: 'floors', description: 'channels that are published to', max: 1e9 },
  rate: { name: 'rate', description: 'position batches per floor and second', max: 10_000 },
  payload: { name: 'payloadBytes', description: 'bytes of a batch', max: 16 * 2 ** 20 },
  history: { name: 'history', description: 'batches in the history of a floor', max: 1e6 },
  cores: { name: 'cores', description: 'cores of one machine', max: 1024 },
  memory: { name: 'memoryGib', description: 'GiB of one machine', max: 100_000 },
  network: { name: 'networkGbit', description: 'Gbit/s of one machine', max: 10_000 },
  return: {
    name: 'returnSeconds',
    description: 'seconds until all clients of a failed machine are connected again',
    min: 1,
    max: 86_400
  }
}

export const USAGE = [
  'Usage: npm run capacity -- [options]',
  '',
  ...Object.entries(OPTIONS).map(
    ([flag, { name, description }]) => `  --${flag.padEnd(12)} ${description} (default ${DEFAULT_DEMAND[name]})`
  ),
  `  --${'sorted'.padEnd(12)} the load balancer sends all clients of a floor to one relay process`,
  `  --${'machine'.padEnd(12)} file with the costs of another machine, written by \`npm run bench -- capacity --machine <file>\``
].join('\n')

export interface CapacityArguments {
  readonly demand: Demand
  /** Null for the costs of the machine that the documentation describes. */
  readonly machineFile: string | null
}

export const parseCapacityArguments = (args: readonly string[]): CapacityArguments => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(Object.keys(OPTIONS).map((flag) => [flag, { type: 'string' as const }])),
      sorted: { type: 'boolean', default: false },
      machine: { type: 'string' }
    }
  })
  const numbers = Object.entries(OPTIONS).flatMap(([flag, { name, min = 0, max }]) => {
    const text = new Map<string, unknown>(Object.entries(values)).get(flag)
    return typeof text === 'string' ? [[name, numberOf(flag, text, min, max)]] : []
  })
  const demand = { ...DEFAULT_DEMAND, ...Object.fromEntries(numbers), isSorted: values.sorted }
  return { demand, machineFile: values.machine ?? null }
}

const numberOf = (flag: string, text: string, min: number, max: number): number => {
  const value = Number(text)
  if (text.trim() === '' || !(value > 0 && value >= min && value <= max))
    throw new UsageError(`--${flag} must be a number ${min === 0 ? 'above 0 and at most' : `from ${min} to`} ${max}`)
  return value
}
