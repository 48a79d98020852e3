/**
 * `npm run packages`: creates the tarballs of the packages `gatehouse-server`, `gatehouse-client` and `gatehouse-backend` in
 * dist/packages, from the build.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { importsOf } from './image/packages.js'
import { writeBundle } from './lib/browser-bundle.js'
import { print, runCommand, UserError } from './lib/command.js'
import { isExampleSource, PACKAGES, type Package, type Project, rangeOf } from './lib/package-contents.js'
import { ROOT } from './lib/root.js'

const USAGE = `Usage: npm run packages [-- --output <folder>] [--repository <url>]

  --output <folder>   default: dist/packages; the folder is emptied before
  --repository <url>  written into the manifests; npm requires it for provenance`

const DEFAULT_OUTPUT = join(ROOT, 'dist/packages')

/** The dependencies of the project that the files of a package import. Optional ones are peers of the package. */
const dependenciesOf = (folder: string, { dependencies, optionalDependencies }: Project, peers: object) => {
  const { packages, missing } = importsOf(folder)
  const unknown = [...packages].filter(
    (name) => !(name in dependencies || name in optionalDependencies || name in peers)
  )
  const problems = [
    ...[...missing].map((file) => `a file of ${folder} imports ${file}, which is missing`),
    ...unknown.map((name) => `${folder} imports ${name}, which is not a dependency`)
  ]
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return Object.fromEntries(
    Object.entries(dependencies)
      .filter(([name]) => packages.has(name))
      .map(([name, version]) => [name, rangeOf(name, version)])
  )
}

const writeJson = (file: string, value: object): void => writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)

/** Creates the folder of the package. */
const assemble = async (
  each: Package,
  project: Project,
  outputFolder: string,
  repository: string | undefined
): Promise<void> => {
  const { name, description, keywords, readme, pinned, nested = {}, examples = {}, bundled } = each
  const folder = join(outputFolder, name)
  for (const [from, to] of Object.entries(each.content(project))) {
    const source = join(ROOT, 'dist', from)
    if (!existsSync(source)) throw new UserError(`dist/${from} does not exist. Run \`npm run build\` first.`)
    // The sources that maps refer to are not in the package.
    cpSync(source, join(folder, to), { recursive: true, filter: (file) => !file.endsWith('.map') })
  }
  for (const [file, fields] of Object.entries(nested))
    writeJson(join(folder, file), Object.fromEntries(fields.map((field) => [field, project[field]])))
  cpSync(join(ROOT, readme), join(folder, 'README.md'))
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  const { version, license, type } = project
  const manifest = each.manifest(project)
  const peers = 'peerDependencies' in manifest ? Object(manifest.peerDependencies) : {}
  writeJson(join(folder, 'package.json'), {
    name,
    version,
    description,
    keywords,
    license,
    ...(repository !== undefined && { repository: { type: 'git', url: `git+${repository}.git` } }),
    type,
    ...manifest,
    dependencies: { ...dependenciesOf(folder, project, peers), ...pinned?.(project) }
  })
  for (const [from, to] of Object.entries(examples))
    cpSync(join(ROOT, from), join(folder, to), { recursive: true, filter: isExampleSource })
  if (bundled !== undefined) await writeBundle(join(ROOT, 'dist', bundled), folder)
}

await runCommand(USAGE, async (args) => {
  const { output, repository } = parseArgs({
    args: [...args],
    options: { output: { type: 'string', default: DEFAULT_OUTPUT }, repository: { type: 'string' } }
  }).values
  rmSync(output, { recursive: true, force: true })
  mkdirSync(output, { recursive: true })
  const project: Project = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const each of PACKAGES) await assemble(each, project, output, repository)
  const folders = PACKAGES.map(({ name }) => `./${name}`)
  const tarballs = execFileSync('npm', ['pack', '--silent', ...folders], { cwd: output, encoding: 'utf8' })
  for (const name of tarballs.trim().split('\n')) print(join(output, name))
  return 0
})
