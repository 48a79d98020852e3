import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Permissive licences: they only require that their text and the names of the authors are shipped too. */
export const ALLOWED_LICENCES: ReadonlySet<string> = new Set([
  ...['MIT', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0', 'PSF-2.0']
])

/** The parts of a CycloneDX document that are used here. */
export interface Sbom {
  readonly components: readonly Component[]
}

export interface Component {
  readonly name: string
  readonly version: string
  readonly licenses?: readonly {
    readonly license?: { readonly id?: string; readonly name?: string }
    readonly expression?: string
  }[]
}

/**
 * The packages that production installs, listed by `npm sbom`. Its own `--omit=dev` also omits production packages that a
 * development package depends on (npm 11), so it runs on a lockfile from which npm has pruned the development packages.
 */
export const productionSbom = (root: string): Sbom => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sbom-'))
  const npm = (...args: string[]): string =>
    execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const manifest = readJson(join(root, 'package.json'))
    const lockfile = readJson(join(root, 'package-lock.json'))
    delete manifest.devDependencies
    delete lockfile.packages[''].devDependencies
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lockfile))
    npm(
      'install',
      '--package-lock-only',
      '--offline',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--loglevel=error'
    )
    const args = ['--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application', '--loglevel=error']
    return JSON.parse(npm('sbom', ...args))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The licence as the package declares it; `none` where it declares nothing. */
export const licenceOf = ({ licenses = [] }: Component): string =>
  licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name ?? 'none').join(' AND ') ||
  'none'

export const licenceTable = (components: readonly Component[]): string =>
  [
    '| package | version | licence |',
    '|---|---|---|',
    ...components.map((component) => `| \`${component.name}\` | ${component.version} | ${licenceOf(component)} |`),
    ''
  ].join('\n')

const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8'))
