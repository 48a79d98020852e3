/**
 * `tsx scripts/image/assemble.ts gateway image`: puts into the folder `image` what the built gateway needs to run, and
 * nothing else. The Dockerfiles call it, after `npm run build`.
 */
import { cpSync, existsSync, rmSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importsOf, packageFolders } from './packages.js'

// The manifest, so that Node.js takes the files for the modules that they are.
const SHARED = ['package.json', 'schemas', 'src/shared']

/** What each image holds of `dist`. */
const PROGRAMS = {
  gateway: [...SHARED, 'src/gateway'],
  relay: [...SHARED, 'src/relay', 'relay-admin'],
  demo: [...SHARED, 'src/gateway', 'demo/backend', 'web']
} as const satisfies Readonly<Record<string, readonly string[]>>

type Program = keyof typeof PROGRAMS

export const assemble = (root: string, program: Program, into: string): void => {
  rmSync(into, { recursive: true, force: true })
  for (const part of PROGRAMS[program]) copy(join(root, 'dist', part), join(into, 'dist', part), isOurs)
  const { packages, missing } = importsOf(join(into, 'dist'))
  if (missing.length > 0) throw new Error(missing.join('\n'))
  for (const folder of packageFolders(root, packages)) copy(join(root, folder), join(into, folder), isOfPackage)
}

const copy = (from: string, into: string, isWanted: (path: string) => boolean): void =>
  cpSync(from, into, { recursive: true, dereference: true, filter: (path) => isWanted(relative(from, path)) })

const isOurs = (path: string): boolean => !/\.(?:d\.ts|map)$/.test(path)

const LICENCE = /^(?:licen[cs]e|notice|copying)/i
const FOR_DEVELOPERS = /\.(?:[cm]?ts|map|md|markdown|flow|html|yml|test\.[cm]?js)$|(?:^|\/)(?:tests?|test\.[cm]?js)$/i
const FOLDERS_FOR_DEVELOPERS = /^(?:\..*|__tests__|docs?|examples?|bench(?:marks?)?|coverage|integration)$/

/** Licences stay with the code that they are about; tests, types, maps and manuals do not run. */
const isOfPackage = (path: string): boolean => {
  const [top = ''] = path.split(sep)
  // Packages inside a package are asked for by themselves.
  if (top === 'node_modules' || FOLDERS_FOR_DEVELOPERS.test(top)) return false
  return LICENCE.test(basename(path)) || !FOR_DEVELOPERS.test(path)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [program = '', into = ''] = process.argv.slice(2)
  if (!Object.hasOwn(PROGRAMS, program) || into === '' || existsSync(into)) {
    process.stderr.write(`usage: assemble.ts ${Object.keys(PROGRAMS).join('|')} <folder that is not there yet>\n`)
    process.exit(1)
  }
  assemble(fileURLToPath(new URL('../..', import.meta.url)), program as Program, into)
}
