/**
 * `npm run sbom` writes down what production is made of into `dist/sbom`: `sbom.cdx.json` for programs (CycloneDX, by npm
 * itself) and `licences.md` for people. It fails where a licence is not on the list of those that may be shipped.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ALLOWED_LICENCES, licenceTable, productionLicences } from './licences.js'
import { type Bom, onlyProduction } from './production-bom.js'
import { ROOT } from './root.js'

const FOLDER = join(ROOT, 'dist/sbom')
const NPM_SBOM = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application']

const bomOfEverything = (): Bom =>
  JSON.parse(execFileSync('npm', NPM_SBOM, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }))

const licensed = productionLicences(ROOT)
const write = (name: string, text: string): string => {
  const file = join(FOLDER, name)
  writeFileSync(file, text)
  return file
}
mkdirSync(FOLDER, { recursive: true })
const files = [
  write('sbom.cdx.json', `${JSON.stringify(onlyProduction(bomOfEverything(), licensed), null, 2)}\n`),
  write('licences.md', licenceTable(licensed))
]
console.log(`${licensed.length} packages: ${files.join(', ')}`)

const refused = licensed.filter(({ licence }) => !ALLOWED_LICENCES.has(licence))
for (const { name, licence } of refused) console.error(`${name}: ${licence} is not on the list of scripts/licences.ts`)
if (refused.length > 0) process.exitCode = 1
