/** `npm run test:proxy-chaos`: clients of a relay whose backend stops, hangs and changes its rules. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand, UsageError } from '../../scripts/lib/command.js'
import { Cleanup } from '../helper/cleanup.js'
import { proxyChaos } from './chaos.js'

const USAGE = `Usage: npm run test:proxy-chaos [-- [--seconds <n>] [--clients <n>] [--seed <n>]]

Runs for 300 seconds with 500 clients. Afterwards every client must be in the state that the backend allows.`

const integer = (name: string, text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} must be an integer, not ${text}`)
  return Number(text)
}

const main = async (args: readonly string[]): Promise<number> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '300' },
      clients: { type: 'string', default: '500' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) }
    }
  })
  const options = {
    seconds: integer('seconds', values.seconds),
    clients: integer('clients', values.clients),
    seed: integer('seed', values.seed)
  }
  const cleanup = new Cleanup()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-proxy-chaos-'))
  cleanup.teardown(() => rmSync(folder, { recursive: true, force: true }))
  print(`seed ${options.seed}`)
  try {
    const violations = await proxyChaos(options, { t: cleanup, folder, print })
    for (const violation of violations) print(`violation: ${violation}`)
    return violations.length === 0 ? 0 : 1
  } finally {
    await cleanup.run()
  }
}

await runCommand(USAGE, main)
