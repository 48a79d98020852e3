/** `npm run sbom`: writes the software bill of materials of production and a table of its licences into `dist/sbom`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand } from './lib/command.js'
import { ROOT } from './lib/root.js'
import { ALLOWED_LICENCES, licenceOf, licenceTable, productionSbom } from './lib/sbom.js'

const USAGE = `Usage: npm run sbom

Writes dist/sbom/sbom.cdx.json (CycloneDX) and dist/sbom/licences.md. Fails for a licence that is not in scripts/lib/sbom.ts.`

const FOLDER = join(ROOT, 'dist/sbom')

const main = (args: readonly string[]): number => {
  parseArgs({ args: [...args], options: {} })
  const sbom = productionSbom(ROOT)
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(join(FOLDER, 'sbom.cdx.json'), `${JSON.stringify(sbom, null, 2)}\n`)
  writeFileSync(join(FOLDER, 'licences.md'), licenceTable(sbom.components))
  print(`${sbom.components.length} packages: ${FOLDER}/sbom.cdx.json, ${FOLDER}/licences.md`)

  const rejected = sbom.components.filter((component) => !ALLOWED_LICENCES.has(licenceOf(component)))
  for (const component of rejected)
    print(`${component.name}: the licence ${licenceOf(component)} is not allowed in scripts/lib/sbom.ts`)
  return rejected.length > 0 ? 1 : 0
}

await runCommand(USAGE, main)
