import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PACKAGES } from '../../../scripts/lib/package-contents.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { environment } from '../../helper/environment.js'
import { required } from '../../helper/required.js'
import { scriptArguments } from '../../helper/script.js'
import { type CommandBlock, commandBlocks } from '../docs/command-blocks.js'

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

/** A folder like a clone in which `npm run packages` has run. */
const clone = once((): string => {
  const folder = join(newFolder(), 'gatehouse')
  mkdirSync(join(folder, 'dist'), { recursive: true })
  symlinkSync(join(ROOT, 'dist/src'), join(folder, 'dist/src'))
  run(ROOT, process.execPath, ...scriptArguments('scripts/packages.ts'), '--output', join(folder, 'dist/packages'))
  return folder
})

/** The packages of the build. */
export const packedPackages = once((): readonly PackedPackage[] => {
  const output = join(clone(), 'dist/packages')
  return PACKAGES.map(({ name }) => {
    const folder = join(output, name)
    const manifest: PackedManifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return { name, folder, manifest, tarball: join(output, `${name}-${manifest.version}.tgz`) }
  })
})

/** The shell blocks of the quickstart. */
export const quickstartBlocks = (): CommandBlock[] =>
  commandBlocks(readFileSync(join(ROOT, 'README.md'), 'utf8')).filter(({ skipped }) => skipped === undefined)

/** A new project with all packages, written and installed with the commands of the quickstart, and their output. */
export const quickstartProject = once(() => {
  const commands = required(quickstartBlocks()[1]).commands
  const output = execFileSync('sh', ['-ec', commands], {
    cwd: newFolder(),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...environment.all,
      GATEHOUSE: clone(),
      // Strict: transitive dependencies must support this Node.js too.
      npm_config_engine_strict: 'true',
      npm_config_prefer_offline: 'true',
      npm_config_audit: 'false'
    }
  })
  return { folder: join(clone(), '../orders'), gatehouse: clone(), commands, output }
})

/** The folder of a project with all packages, installed from their tarballs. */
export const installedPackages = (): string => quickstartProject().folder
