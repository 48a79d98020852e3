import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Licences that ask for no more than their text and names: whoever ships this service can ship these along. */
export const ALLOWED_LICENCES: ReadonlySet<string> = new Set([
  ...['MIT', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0']
])

export interface Licensed {
  readonly name: string
  readonly version: string
  /** As the package itself says it; where it says nothing, `none`. */
  readonly licence: string
}

interface LockedPackage {
  readonly dev?: boolean
}

/** Every package that production installs, as the lockfile has it; what each says about itself is in its own folder. */
export const productionLicences = (root: string): Licensed[] => {
  const { packages } = readJson(join(root, 'package-lock.json')) as { packages: Record<string, LockedPackage> }
  return (
    Object.entries(packages)
      // the first is ourselves
      .filter(([place, { dev }]) => place !== '' && dev !== true)
      .map(([place]) => licensed(place, readJson(join(root, place, 'package.json'))))
  )
}

const licensed = (place: string, about: unknown): Licensed => {
  const { version, license, licenses } = about as Record<string, unknown>
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
  return { name, version: String(version), licence: licenceText(license ?? licenses) }
}

/** Old packages have an object, or a list of them. */
const licenceText = (licence: unknown): string => {
  if (typeof licence === 'string') return licence
  if (Array.isArray(licence)) return licence.map(licenceText).join(' OR ')
  return String((licence as { type?: unknown } | undefined)?.type ?? 'none')
}

/** For people: one line for each package. */
export const licenceTable = (licensed: readonly Licensed[]): string =>
  [
    '| package | version | licence |',
    '|---|---|---|',
    ...licensed.map(({ name, version, licence }) => `| \`${name}\` | ${version} | ${licence} |`),
    ''
  ].join('\n')

const readJson = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'))
