/** `npm run manifests`: renders the Helm chart into plain manifests in dist/kubernetes. A release contains them. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand } from './lib/command.js'
import { prepareHelm } from './lib/kubernetes-tools.js'
import { manifests } from './lib/manifests.js'
import { ROOT } from './lib/root.js'
import { thisMachine } from './lib/services.js'

const OUTPUT = join(ROOT, 'dist/kubernetes')

await runCommand('Usage: npm run manifests', async (args) => {
  parseArgs({ args: [...args], options: {} })
  const files = manifests(await prepareHelm(thisMachine(process.env), print))
  rmSync(OUTPUT, { recursive: true, force: true })
  mkdirSync(OUTPUT, { recursive: true })
  for (const [name, text] of files) writeFileSync(join(OUTPUT, name), text)
  print(relative(process.cwd(), OUTPUT))
  return 0
})
