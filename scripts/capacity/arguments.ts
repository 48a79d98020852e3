import { type Demand, USUAL } from './plan.js'

/** What is wrong with the arguments, for a person. */
export class CapacityFault extends Error {}

type NumberName = { [Name in keyof Demand]: Demand[Name] extends number ? Name : never }[keyof Demand]

interface Option {
  readonly name: NumberName
  readonly about: string
  readonly max: number
}

const OPTIONS: Readonly<Record<string, Option>> = {
  connections: { name: 'connections', about: 'browsers at the same time', max: 1e10 },
  floors: { name: 'floors', about: 'channels that are published to', max: 1e9 },
  rate: { name: 'rate', about: 'position batches per floor and second', max: 10_000 },
  payload: { name: 'payloadBytes', about: 'bytes of a batch', max: 16 * 2 ** 20 },
  cores: { name: 'cores', about: 'cores of one machine', max: 1024 },
  memory: { name: 'memoryGib', about: 'GiB of one machine', max: 100_000 },
  network: { name: 'networkGbit', about: 'Gbit/s of one machine', max: 10_000 },
  return: { name: 'returnSeconds', about: 'seconds until all clients of a failed machine are back', max: 86_400 }
}

const SORTED = '--sorted'

export const HELP = [
  'npm run capacity -- [options]',
  ...Object.entries(OPTIONS).map(([flag, { name, about }]) => `  --${flag.padEnd(12)} ${about} (${USUAL[name]})`),
  `  ${SORTED.padEnd(14)} clients of one floor meet at one relay process`,
  ''
].join('\n')

/** Null where help is asked for. */
export const demandFrom = (args: readonly string[]): Demand | null => {
  let demand = USUAL
  const left = [...args]
  for (let argument = left.shift(); argument !== undefined; argument = left.shift()) {
    if (argument === '--help') return null
    if (argument === SORTED) demand = { ...demand, isSorted: true }
    else {
      const [flag, inline] = split(argument)
      const option = Object.hasOwn(OPTIONS, flag) ? OPTIONS[flag] : undefined
      if (option === undefined) throw new CapacityFault(`there is no ${argument}; --help shows what there is`)
      demand = { ...demand, [option.name]: numberOf(flag, inline ?? left.shift(), option.max) }
    }
  }
  return demand
}

const split = (argument: string): readonly [flag: string, value: string | undefined] => {
  const [, flag = '', value] = /^--([a-z]+)(?:=(.*))?$/s.exec(argument) ?? []
  return [flag, value]
}

const numberOf = (flag: string, text: string | undefined, max: number): number => {
  const value = Number(text)
  if (text === undefined || text.trim() === '' || !(value > 0 && value <= max)) {
    throw new CapacityFault(`--${flag} must be a number above 0 and at most ${max}`)
  }
  return value
}
