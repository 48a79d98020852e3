/**
 * `npm run release`: writes dist/release/gatehouse-<version>.tar.gz, which runs both programs without npm: the build, the
 * production packages, `deploy` and the documentation. deploy/systemd/gatehouse-release installs it.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { copyPackage, copyProgram } from './image/assemble.js'
import { packageFolders } from './image/packages.js'
import { print, runCommand, UserError } from './lib/command.js'
import { INIT_EXAMPLES, isExampleSource } from './lib/package-contents.js'
import { ROOT } from './lib/root.js'

const USAGE = `Usage: npm run release [-- --out <folder>]

  --out <folder>  default: dist/release, which is emptied before`

const DEFAULT_OUTPUT = join(ROOT, 'dist/release')

/** Parts of `dist`; the demo and results of other scripts are not among them. */
const PROGRAMS = ['package.json', 'schemas', 'src', 'relay-admin']
const FILES = [
  'deploy',
  'docs',
  ...INIT_EXAMPLES,
  'package.json',
  'package-lock.json',
  'LICENSE',
  'CHANGELOG.md',
  'README.md',
  'SECURITY.md'
]

await runCommand(USAGE, (args) => {
  const { values } = parseArgs({ args: [...args], options: { out: { type: 'string', default: DEFAULT_OUTPUT } } })
  if (!existsSync(join(ROOT, 'dist/src/gateway/main.js'))) throw new UserError('Nothing is built: npm run build')
  const { version, dependencies, optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const name = `gatehouse-${version}`
  const folder = join(values.out, name)
  if (values.out === DEFAULT_OUTPUT) rmSync(values.out, { recursive: true, force: true })
  mkdirSync(values.out, { recursive: true })
  // Fails if the folder exists.
  mkdirSync(folder)

  for (const part of PROGRAMS) copyProgram(join(ROOT, 'dist', part), join(folder, 'dist', part))
  const packages = Object.keys({ ...dependencies, ...optionalDependencies })
  for (const part of packageFolders(ROOT, packages)) copyPackage(join(ROOT, part), join(folder, part))
  for (const file of FILES)
    cpSync(join(ROOT, file), join(folder, file), { recursive: true, dereference: true, filter: isExampleSource })
  rmSync(join(folder, 'deploy/compose/secrets'), { recursive: true, force: true })

  // The same input makes the same archive.
  const reproducible = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX']
  const archive = join(values.out, `${name}.tar.gz`)
  const gzip = '--use-compress-program=gzip --no-name'
  execFileSync('tar', ['--create', ...reproducible, gzip, '--file', archive, '--directory', values.out, name])
  rmSync(folder, { recursive: true })
  print(relative(process.cwd(), archive))
  return 0
})
