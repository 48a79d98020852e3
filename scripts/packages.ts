/**
 * `npm run packages`: creates the tarballs of the packages `gatehouse` (servers and command) and `gatehouse-client`
 * (browser library) in dist/packages, from the build.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { print, runCommand, UserError } from './lib/command.js'
import { ROOT } from './lib/root.js'

const DEFAULT_OUTPUT = join(ROOT, 'dist/packages')

interface Manifest {
  readonly version: string
  readonly type: string
  readonly license: string
  readonly description: string
  readonly engines: Readonly<Record<string, string>>
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
  readonly overrides: Readonly<Record<string, string>>
}

interface Package {
  readonly name: 'gatehouse' | 'gatehouse-client'
  /** Files and folders of `dist`, with their places in the package. */
  readonly content: (project: Manifest) => Readonly<Record<string, string>>
  readonly manifest: (project: Manifest) => object
  /** Further manifests with the fields of the project that they contain. */
  readonly nested?: Readonly<Record<string, readonly (keyof Manifest)[]>>
}

/** The browser library is a package of its own. */
const CLIENT_DEPENDENCIES = ['centrifuge', '@sinclair/typebox']
const CLIENT_ONLY = 'centrifuge'

/** Overrides do not reach the projects that install the package: later versions do not run on Node.js 20. */
const PINNED = ['light-my-request']

/** The dependencies of the demo backend only. `npm install --omit=optional` leaves them out. */
const DEMO_DEPENDENCIES = [
  '@electric-sql/pglite',
  '@fontsource-variable/noto-sans',
  '@fontsource-variable/noto-sans-hebrew',
  '@fontsource-variable/noto-sans-jp',
  '@fontsource-variable/noto-sans-kr',
  '@fontsource-variable/noto-sans-sc',
  '@fontsource-variable/noto-sans-thai',
  '@fontsource-variable/vazirmatn',
  '@fontsource/unifont',
  'bcryptjs',
  'bidi-js',
  'csv-parse',
  'fontkit',
  'image-size',
  'linebreak',
  'pdfkit',
  'subset-font'
]

const pick = (versions: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.map((name) => {
      const version = versions[name]
      if (version === undefined) throw new Error(`package.json has no dependency ${name}`)
      return [name, version]
    })
  )

/** The files of the entries, which are beside the folders. */
const entryFiles = (exports: Manifest['exports']): Record<string, string> =>
  Object.fromEntries(
    Object.values(exports)
      .flatMap(({ types, default: code }) => [types, code])
      .map((path) => [path.replace('./dist/', ''), path])
  )

const entry = (path: string) => ({ types: `./${path}.d.ts`, default: `./${path}.js` })

const PACKAGES: readonly Package[] = [
  {
    name: 'gatehouse',
    content: ({ exports }) => ({
      ...entryFiles(exports),
      'src/backend': 'dist/src/backend',
      'src/cli': 'dist/src/cli',
      'src/gateway': 'dist/src/gateway',
      'src/openapi': 'dist/src/openapi',
      'src/relay': 'dist/src/relay',
      'src/shared': 'dist/src/shared',
      schemas: 'dist/schemas',
      'demo/backend': 'dist/demo/backend',
      'demo/run': 'dist/demo/run',
      'relay-admin': 'dist/relay-admin',
      web: 'dist/web'
    }),
    manifest: ({ engines, bin, exports, dependencies, devDependencies, optionalDependencies, overrides }) => ({
      engines,
      bin,
      exports,
      dependencies: {
        ...Object.fromEntries(Object.entries(dependencies).filter(([name]) => name !== CLIENT_ONLY)),
        ...pick(overrides, PINNED)
      },
      optionalDependencies: pick(devDependencies, DEMO_DEPENDENCIES),
      // For tracing. Peers, because npm would install optional dependencies for everybody.
      peerDependencies: Object.fromEntries(
        Object.entries(optionalDependencies).map(([name, version]) => [name, `^${version}`])
      ),
      peerDependenciesMeta: Object.fromEntries(
        Object.keys(optionalDependencies).map((name) => [name, { optional: true }])
      )
    }),
    // The programs import their version from here. Entry points in it would be paths without a file.
    nested: { 'dist/package.json': ['version', 'type', 'optionalDependencies'] }
  },
  {
    name: 'gatehouse-client',
    content: () => ({ 'src/client': 'src/client', schemas: 'schemas' }),
    manifest: ({ dependencies, devDependencies }) => ({
      sideEffects: false,
      exports: {
        '.': entry('src/client/index'),
        './buildings': entry('src/client/buildings/index'),
        './vue-router': entry('src/client/vue-router'),
        './schemas/*': entry('schemas/*')
      },
      dependencies: pick(dependencies, CLIENT_DEPENDENCIES),
      peerDependencies: { 'vue-router': `>=${Number.parseInt(devDependencies['vue-router'] ?? '', 10) - 1}` },
      peerDependenciesMeta: { 'vue-router': { optional: true } }
    })
  }
]

const writeJson = (file: string, value: object): void => writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)

const pack = ({ name, content, manifest, nested = {} }: Package, project: Manifest, outputFolder: string): string => {
  const folder = join(outputFolder, name)
  for (const [from, to] of Object.entries(content(project))) {
    const source = join(ROOT, 'dist', from)
    if (!existsSync(source)) throw new UserError(`dist/${from} does not exist. Run \`npm run build\` first.`)
    // The sources that maps refer to are not in the package.
    cpSync(source, join(folder, to), { recursive: true, filter: (file) => !file.endsWith('.map') })
  }
  cpSync(join(ROOT, 'packages', name), folder, { recursive: true })
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  const { version, license, description, type } = project
  writeJson(join(folder, 'package.json'), { name, version, description, license, type, ...manifest(project) })
  for (const [file, fields] of Object.entries(nested)) {
    writeJson(join(folder, file), Object.fromEntries(fields.map((field) => [field, project[field]])))
  }
  const output = execFileSync('npm', ['pack', '--silent', '--pack-destination', outputFolder], { cwd: folder })
  return join(outputFolder, output.toString().trim())
}

await runCommand('Usage: npm run packages [-- --output FOLDER]', (args) => {
  const { output } = parseArgs({
    args: [...args],
    options: { output: { type: 'string', default: DEFAULT_OUTPUT } }
  }).values
  rmSync(output, { recursive: true, force: true })
  mkdirSync(output, { recursive: true })
  const project: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const each of PACKAGES) print(pack(each, project, output))
  return 0
})
