import { parseArgs } from 'node:util'
import { print, UsageError } from '../../scripts/lib/command.js'
import { Cleanup } from './cleanup.js'

export interface ChaosOptions {
  readonly seconds: number
  readonly clients: number
  readonly seed: number
}

/** Reads the options of a chaos program. Without `--seed`, a random one is chosen; it is printed, so that a run can be repeated. */
export const chaosOptions = (args: readonly string[], defaults: Omit<ChaosOptions, 'seed'>): ChaosOptions => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: String(defaults.seconds) },
      clients: { type: 'string', default: String(defaults.clients) },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) }
    }
  })
  const integer = (name: keyof ChaosOptions): number => {
    if (!/^\d{1,9}$/.test(values[name])) throw new UsageError(`--${name} must be an integer, not ${values[name]}`)
    return Number(values[name])
  }
  print(`seed ${values.seed}`)
  return { seconds: integer('seconds'), clients: integer('clients'), seed: integer('seed') }
}

/** Runs `chaos`, prints its violations and stops what it started. Resolves with whether there were none. */
export const hasNoViolations = async (chaos: (cleanup: Cleanup) => Promise<readonly string[]>): Promise<boolean> => {
  const cleanup = new Cleanup()
  try {
    const violations = await chaos(cleanup)
    for (const violation of violations) print(`violation: ${violation}`)
    return violations.length === 0
  } finally {
    await cleanup.run()
  }
}
