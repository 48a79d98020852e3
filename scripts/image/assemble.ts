/**
 * `tsx scripts/image/assemble.ts gateway image`: copies the files that the built gateway needs at run time into the folder
 * `image`. The Dockerfiles call it after `npm run build`.
 */
import { cpSync, existsSync, rmSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importsOf, packageFolders } from './packages.js'

/** Declares the files as ES modules. `src/shared` has the health check and threads, which no file imports. */
const SHARED = ['package.json', 'src/shared']

/** The parts of `dist` that each program starts or serves. Files that these import are added. */
export const PROGRAMS = {
  gateway: [...SHARED, 'src/gateway'],
  relay: [...SHARED, 'src/relay', 'relay-admin'],
  demo: [...SHARED, 'demo/backend', 'web']
} as const satisfies Readonly<Record<string, readonly string[]>>

type Program = keyof typeof PROGRAMS

const isProgram = (name: string): name is Program => Object.hasOwn(PROGRAMS, name)

export const assemble = (root: string, program: Program, into: string): void => {
  rmSync(into, { recursive: true, force: true })
  const packages = copyBuild(join(root, 'dist'), PROGRAMS[program], join(into, 'dist'))
  for (const folder of packageFolders(root, packages)) copyPackage(join(root, folder), join(into, folder))
}

/** Copies parts of a build and all files that they import. Returns the packages that the copied files import. */
export const copyBuild = (dist: string, parts: readonly string[], into: string): ReadonlySet<string> => {
  for (const part of parts) copyProgram(join(dist, part), join(into, part))
  for (;;) {
    const { packages, missing } = importsOf(into)
    if (missing.size === 0) return packages
    for (const file of missing) copyProgram(join(dist, relative(into, file)), file)
  }
}

/** Copies compiled files without types and source maps. */
export const copyProgram = (from: string, into: string): void => copy(from, into, isRuntimeFile)

/** Copies an installed package with its licence, without tests, types, source maps and documentation. */
export const copyPackage = (from: string, into: string): void => copy(from, into, isRuntimeFileOfPackage)

const copy = (from: string, into: string, isIncluded: (path: string) => boolean): void =>
  cpSync(from, into, { recursive: true, dereference: true, filter: (path) => isIncluded(relative(from, path)) })

const isRuntimeFile = (path: string): boolean => !/\.(?:d\.ts|map)$/.test(path)

const LICENCE = /^(?:licen[cs]e|notice|copying)/i
const FOR_DEVELOPERS = /\.(?:[cm]?ts|map|md|markdown|flow|html|yml|test\.[cm]?js)$|(?:^|\/)(?:tests?|test\.[cm]?js)$/i
const FOLDERS_FOR_DEVELOPERS = /^(?:\..*|__tests__|docs?|examples?|bench(?:marks?)?|coverage|integration)$/

const isRuntimeFileOfPackage = (path: string): boolean => {
  const [top = ''] = path.split(sep)
  // Nested packages are copied separately.
  if (top === 'node_modules' || FOLDERS_FOR_DEVELOPERS.test(top)) return false
  return LICENCE.test(basename(path)) || !FOR_DEVELOPERS.test(path)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [program = '', into = '', ...more] = process.argv.slice(2)
  if (!isProgram(program) || into === '' || more.length > 0 || existsSync(into)) {
    process.stderr.write(`Usage: assemble.ts ${Object.keys(PROGRAMS).join('|')} <new folder>\n`)
    process.exit(2)
  }
  assemble(fileURLToPath(new URL('../..', import.meta.url)), program, into)
}
