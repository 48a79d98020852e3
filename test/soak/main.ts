/**
 * `npm run soak`: relays under random faults, with every delivery verified.
 * `npm run soak -- --seconds 600 --faults 200 --seed 7 --clients 400`; the same seed gives the same sequence of faults.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { prepareServices, services, thisMachine } from '../../scripts/services.js'
import type { Teardown } from '../helper/child.js'
import { DEFAULTS, soak } from './soak.js'

const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const wholeNumber = (name: string, text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number, not ${text}`)
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
    seed: wholeNumber('seed', values.seed),
    seconds: wholeNumber('seconds', values.seconds),
    faults: wholeNumber('faults', values.faults),
    clients: wholeNumber('clients', values.clients)
  }
}

/** Ends what was started last first. */
class Cleanup implements Teardown {
  readonly #steps: (() => unknown)[] = []

  readonly teardown = (step: () => unknown): void => {
    this.#steps.push(step)
  }

  async run(): Promise<void> {
    for (const step of this.#steps.reverse()) await step()
  }
}

/** The run stops, empties and starts a Redis of its own, so one that REDIS_URL names is no help. */
const REDIS = services.filter(({ name }) => name === 'Redis')

const main = async (args: readonly string[], { REDIS_URL: _, ...env }: NodeJS.ProcessEnv): Promise<number> => {
  const options = optionsOf(args)
  prepareServices(REDIS, thisMachine(env), say)
  const cleanup = new Cleanup()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'))
  cleanup.teardown(() => rmSync(folder, { recursive: true, force: true }))
  try {
    const { violations } = await soak(options, { t: cleanup, folder, say })
    if (violations.length === 0) return 0
    say(`failed; again with: npm run soak -- ${repeat(options)}`)
    return 1
  } finally {
    await cleanup.run()
  }
}

const repeat = (options: Readonly<Record<string, number>>): string =>
  Object.entries(options)
    .map(([name, value]) => `--${name} ${value}`)
    .join(' ')

try {
  process.exitCode = await main(process.argv.slice(2), process.env)
} catch (error) {
  say(`soak: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
