import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { ROOT } from '../../scripts/lib/root.js'

/** The packages that only benchmarks need, with a lockfile of their own. */
const FOLDER = join(ROOT, 'bench')

/** Installs the packages on first use. Without them, the servers that need them are left out. */
export const installPeerPackages = (): void => {
  if (!existsSync(join(FOLDER, 'node_modules')))
    spawnSync('npm', ['ci', '--prefix', FOLDER, '--no-audit', '--no-fund'], { stdio: 'inherit' })
}

/** Loads one of the packages. Their types are not installed, so the caller names those that it uses. */
export const peerPackage: (name: string) => unknown = createRequire(join(FOLDER, 'package.json'))

/** The version of a package of the benchmarks or of the project. */
export const packageVersion = (name: string): string | undefined => {
  const file = [FOLDER, ROOT].map((folder) => join(folder, 'node_modules', name, 'package.json')).find(existsSync)
  return file === undefined ? undefined : JSON.parse(readFileSync(file, 'utf8')).version
}
