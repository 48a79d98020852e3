/** `npm run soak`: relays under random faults, with every delivery verified. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand, UsageError } from '../../../scripts/lib/command.js'
import { prepareServices, services, thisMachine } from '../../../scripts/lib/services.js'
import { Cleanup } from '../../helper/cleanup.js'
import { DEFAULTS, soak } from './soak.js'

const USAGE = `Usage: npm run soak [-- [--seconds <n>] [--faults <n>] [--clients <n>] [--seed <n>]]

Runs for at least so many seconds and faults. The same seed gives the same sequence of faults.`

const integer = (name: string, text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} must be an integer, not ${text}`)
  return Number(text)
}

const optionsOf = (args: readonly string[]) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      seconds: { type: 'string', default: String(DEFAULTS.seconds) },
      faults: { type: 'string', default: String(DEFAULTS.faults) },
      clients: { type: 'string', default: String(DEFAULTS.clients) }
    }
  })
  return {
    seed: integer('seed', values.seed),
    seconds: integer('seconds', values.seconds),
    faults: integer('faults', values.faults),
    clients: integer('clients', values.clients)
  }
}

/** The run stops, empties and starts its own Redis, so that REDIS_URL is not used. */
const REDIS = services.filter(({ name }) => name === 'Redis')

const main = async (args: readonly string[], { REDIS_URL: _, ...env }: NodeJS.ProcessEnv): Promise<number> => {
  const options = optionsOf(args)
  await prepareServices(REDIS, thisMachine(env), print)
  const cleanup = new Cleanup()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'))
  cleanup.teardown(() => rmSync(folder, { recursive: true, force: true }))
  try {
    const { violations } = await soak(options, { t: cleanup, folder, print })
    if (violations.length === 0) return 0
    print(`failed; repeat with: npm run soak -- ${repeat(options)}`)
    return 1
  } finally {
    await cleanup.run()
  }
}

const repeat = (options: Readonly<Record<string, number>>): string =>
  Object.entries(options)
    .map(([name, value]) => `--${name} ${value}`)
    .join(' ')

await runCommand(USAGE, (args) => main(args, process.env))
