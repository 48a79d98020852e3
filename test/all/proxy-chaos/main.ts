/** `npm run test:proxy-chaos`: clients of a relay whose backend stops, hangs and changes its rules. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { print, runCommand } from '../../../scripts/lib/command.js'
import { chaosOptions, hasNoViolations } from '../../helper/chaos-command.js'
import { proxyChaos } from './chaos.js'

const USAGE = `Usage: npm run test:proxy-chaos [-- [--seconds <n>] [--clients <n>] [--seed <n>]]

Runs for 300 seconds with 500 clients. Afterwards every client must be in the state that the backend allows.`

const main = async (args: readonly string[]): Promise<number> => {
  const options = chaosOptions(args, { seconds: 300, clients: 500 })
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-proxy-chaos-'))
  const isClean = await hasNoViolations((cleanup) => {
    cleanup.teardown(() => rmSync(folder, { recursive: true, force: true }))
    return proxyChaos(options, { t: cleanup, folder, print })
  })
  return isClean ? 0 : 1
}

await runCommand(USAGE, main)
