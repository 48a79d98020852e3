/**
 * `npm run manifests`: copies alerts and dashboards into the Helm chart and renders it into `deploy/kubernetes`. Tests check
 * that the files are current.
 */
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand } from './lib/command.js'
import { prepareHelm } from './lib/kubernetes-tools.js'
import { CHART, CHART_COPIES, MANIFESTS, manifests } from './lib/manifests.js'
import { ROOT } from './lib/root.js'
import { thisMachine } from './lib/services.js'

await runCommand('Usage: npm run manifests', async (args) => {
  parseArgs({ args: [...args], options: {} })
  for (const [copy, source] of Object.entries(CHART_COPIES)) copyFileSync(join(ROOT, source), join(CHART, copy))
  const helm = await prepareHelm(thisMachine(process.env), print)
  for (const [name, text] of manifests(helm)) writeFileSync(join(MANIFESTS, name), text)
  return 0
})
