import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PACKAGES } from '../../scripts/lib/package-contents.js'
import { ROOT } from '../../scripts/lib/root.js'
import { scriptArguments } from '../helper/script.js'

export interface PackedPackage {
  readonly name: string
  readonly folder: string
  readonly tarball: string
  readonly manifest: PackedManifest
}

export interface PackedManifest {
  readonly version: string
  readonly description: string
  readonly keywords: readonly string[]
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional: boolean }>>
  readonly sideEffects?: boolean
}

/** Runs a program and returns its output. */
export const run = (cwd: string, command: string, ...args: readonly string[]): string =>
  execFileSync(command, [...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** Calls `create` once for all test files of the process, because packing and installing take seconds. */
const once = <T>(create: () => T): (() => T) => {
  let value: T | undefined
  return () => {
    value ??= create()
    return value
  }
}

const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-packages-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The packages of the build. */
export const packedPackages = once((): readonly PackedPackage[] => {
  const output = newFolder()
  run(ROOT, process.execPath, ...scriptArguments('scripts/packages.ts'), '--output', output)
  return PACKAGES.map(({ name }) => {
    const folder = join(output, name)
    const manifest: PackedManifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return { name, folder, manifest, tarball: join(output, `${name}-${manifest.version}.tgz`) }
  })
})

/** A new folder with all packages installed from their tarballs, as a team would install them. */
export const installedPackages = once((): string => {
  const folder = newFolder()
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const tarballs = packedPackages().map(({ tarball }) => tarball)
  // Strict: transitive dependencies must support this Node.js too.
  run(
    folder,
    'npm',
    'install',
    '--engine-strict',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--silent',
    ...tarballs
  )
  return folder
})
