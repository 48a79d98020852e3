/**
 * `tsx scripts/image/assemble.ts gateway image`: copies the files that the built gateway needs at run time into the folder
 * `image`. The Dockerfiles call it after `npm run build`.
 */
import { cpSync, existsSync, rmSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importsOf, packageFolders } from './packages.js'

// package.json declares the files as ES modules.
const SHARED = ['package.json', 'schemas', 'src/shared']

// For the web application and the backend of the demo.
const DEMO_SHARED = ['demo/alert-kinds.js', 'demo/emergency-types.js']

/** The parts of `dist` in each image. */
const PROGRAMS = {
  gateway: [...SHARED, 'src/openapi', 'src/gateway'],
  relay: [...SHARED, 'src/relay', 'relay-admin'],
  demo: [...SHARED, 'src/openapi', 'src/gateway', 'src/backend', 'demo/backend', ...DEMO_SHARED, 'web']
} as const satisfies Readonly<Record<string, readonly string[]>>

type Program = keyof typeof PROGRAMS

const isProgram = (name: string): name is Program => Object.hasOwn(PROGRAMS, name)

export const assemble = (root: string, program: Program, into: string): void => {
  rmSync(into, { recursive: true, force: true })
  for (const part of PROGRAMS[program]) copyProgram(join(root, 'dist', part), join(into, 'dist', part))
  const { packages, missing } = importsOf(join(into, 'dist'))
  if (missing.length > 0) throw new Error(missing.join('\n'))
  for (const folder of packageFolders(root, packages)) copyPackage(join(root, folder), join(into, folder))
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
