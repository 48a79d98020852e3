/** `npm run test:map-chaos`: clients follow maps while Redis is restarted, suspended and cut off. */
import { parseArgs } from 'node:util'
import { print, runCommand, UsageError } from '../../scripts/lib/command.js'
import { Cleanup } from '../helper/cleanup.js'
import { mapChaos } from './chaos.js'

const USAGE = `Usage: npm run test:map-chaos [-- [--seconds <n>] [--clients <n>] [--seed <n>]]

Runs for 120 seconds with 30 clients on a Redis that keeps every confirmed write, then for as long on one that loses writes. After
each failure every client must have the state that Redis has, and the first Redis must have every confirmed change.`

const integer = (name: string, text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} must be an integer, not ${text}`)
  return Number(text)
}

const main = async (args: readonly string[]): Promise<number> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '120' },
      clients: { type: 'string', default: '30' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) }
    }
  })
  const options = {
    seconds: integer('seconds', values.seconds),
    clients: integer('clients', values.clients),
    seed: integer('seed', values.seed)
  }
  print(`seed ${options.seed}`)
  let result = 0
  for (const isDurable of [true, false]) {
    print(isDurable ? 'Redis keeps every confirmed write' : 'Redis loses writes')
    const cleanup = new Cleanup()
    try {
      const violations = await mapChaos(cleanup, options, isDurable, print)
      for (const violation of violations) print(`violation: ${violation}`)
      if (violations.length > 0) result = 1
    } finally {
      await cleanup.run()
    }
  }
  return result
}

await runCommand(USAGE, main)
