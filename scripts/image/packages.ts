import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import ts from 'typescript'

const isRelative = (specifier: string): boolean => specifier.startsWith('.')

const packageName = (specifier: string): string => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')

/** Files of packages that are read instead of imported, such as fonts. */
const RESOLVED = /\bimport\.meta\.resolve\('([^'.][^']*)'\)/g

/** The packages that the JavaScript files below a folder import or read, and the files that they import but that are missing. */
export const importsOf = (folder: string): { readonly packages: Set<string>; readonly missing: Set<string> } => {
  const packages = new Set<string>()
  const missing = new Set<string>()
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.js')) continue
    const file = join(folder, name)
    const source = readFileSync(file, 'utf8')
    for (const [, specifier = ''] of source.matchAll(RESOLVED)) packages.add(packageName(specifier))
    for (const { fileName: specifier } of ts.preProcessFile(source).importedFiles) {
      if (!isRelative(specifier)) {
        if (!isBuiltin(specifier)) packages.add(packageName(specifier))
      } else if (!existsSync(join(dirname(file), specifier))) missing.add(join(dirname(file), specifier))
    }
  }
  return { packages, missing }
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/**
 * The folders of these packages and of their dependencies, relative to `root`, such as `node_modules/a/node_modules/b`.
 * Resolved as Node.js does it, from the folder of the importing package upwards.
 */
export const packageFolders = (root: string, names: Iterable<string>): string[] => {
  const found = new Set<string>()
  const follow = (name: string, from: string, isOptional: boolean): void => {
    const folder = lookUp(root, name, from)
    if (folder === null) {
      if (isOptional) return
      throw new Error(`${from === '' ? 'The program' : from} needs ${name}, which is not installed.`)
    }
    if (found.has(folder)) return
    found.add(folder)
    const manifest: Manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    for (const dependency of Object.keys(manifest.dependencies ?? {}))
      follow(dependency, folder, dependency in (manifest.optionalDependencies ?? {}))
    // Packages for other platforms and optional peers may be missing.
    for (const dependency of Object.keys({ ...manifest.optionalDependencies, ...manifest.peerDependencies }))
      follow(dependency, folder, true)
  }
  for (const name of names) follow(name, '', false)
  return [...found].toSorted()
}

const NODE_MODULES = 'node_modules'

const lookUp = (root: string, name: string, from: string): string | null => {
  for (let above = from; ; above = dirname(above)) {
    const folder = join(above, NODE_MODULES, name)
    if (existsSync(join(root, folder, 'package.json'))) return folder
    if (above === '' || above === '.') return null
  }
}
