import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { PACKAGES } from '../../../scripts/lib/package-contents.js'
import { ROOT } from '../../../scripts/lib/root.js'
import { installedPackages, packedPackages, run } from './tarballs.js'

/** The packages that a consumer installs beside ours, with their types. */
const PEERS = packedPackages()
  .filter(({ name }) => name === 'gatehouse-client')
  .flatMap(({ manifest }) => Object.keys(manifest.peerDependencies ?? {}))
  .flatMap((name) => [name, `@types/${name}`])
  .filter((name) => existsSync(join(ROOT, 'node_modules', name)))

const folder = installedPackages()
for (const name of ['@types/node', ...PEERS]) {
  const link = join(folder, 'node_modules', name)
  mkdirSync(dirname(link), { recursive: true })
  if (!existsSync(link)) symlinkSync(join(ROOT, 'node_modules', name), link)
}

/** The strictest project that a consumer may have. */
const COMPILER_OPTIONS = {
  target: 'es2022',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noImplicitOverride: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
  noEmit: true,
  lib: ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable']
}

/** A module that imports every entry of the packages. */
const importsOfAll = (): string => {
  const entries = packedPackages()
    .flatMap(({ name, manifest }) => Object.keys(manifest.exports).map((entry) => entry.replace('.', name)))
    // One file of a folder is enough.
    .map((entry) => entry.replace('*', 'zones'))
  return [
    ...entries.map((entry, index) => `import * as entry${index} from '${entry}'`),
    `export const entries = [${entries.map((_, index) => `entry${index}`).join(', ')}]`
  ].join('\n')
}

/** Files of the project and of our packages. Types of other packages may have errors under the strictest options. */
const isOurs = ({ fileName }: ts.SourceFile): boolean =>
  fileName.startsWith(folder) && /^(?!.*\/node_modules\/)|\/node_modules\/gatehouse-/.test(fileName)

/** The errors of a project with these files. Not with `tsc`, which also checks the types of all dependencies. */
const compile = (name: string, options: object, files: Readonly<Record<string, string>>): string => {
  const project = join(folder, name)
  mkdirSync(project, { recursive: true })
  for (const [file, text] of Object.entries(files)) writeFileSync(join(project, file), text)
  const config = { compilerOptions: { ...COMPILER_OPTIONS, ...options }, include: ['*.ts'] }
  const parsed = ts.parseJsonConfigFileContent(config, ts.sys, project)
  const program = ts.createProgram(parsed.fileNames, parsed.options)
  const diagnostics = [
    ...parsed.errors,
    ...program.getOptionsDiagnostics(),
    ...program
      .getSourceFiles()
      .filter(isOurs)
      .flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)])
  ]
  return ts.formatDiagnostics(diagnostics, {
    getCanonicalFileName: (path) => path,
    getCurrentDirectory: () => folder,
    getNewLine: () => '\n'
  })
}

/** The TypeScript examples of a page, as files. */
const examplesOf = (page: string): Record<string, string> => {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const name = page.replaceAll('/', '-')
  return Object.fromEntries(
    [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ''], index) => [`${name}-${index}.ts`, code])
  )
}

const BACKEND = `import { buildGateway, buildRelay } from 'gatehouse-server'
import { defineRoutes, get, Type } from 'gatehouse-server/routes'
export const carts = defineRoutes({ domain: 'carts', about: 'Carts', rows: [get('/api/carts', 'List carts')] })
export const gateway = buildGateway({ config: { BACKEND_URL: 'http://127.0.0.1:4000' }, routes: [carts] })
export const relay = buildRelay({ config: { REALTIME_API_KEY: 'k', REALTIME_HMAC_SECRET: 's' } })
// @ts-expect-error: a misspelled setting
export const misspelled = buildGateway({ config: { BACKEND_URI: 'http://127.0.0.1:4000' } })
export const schema = Type.Object({})
`

t.test('a strict program for Node.js and the examples of the packages compile with module nodenext', async (t) => {
  const examples = {
    ...examplesOf('docs/reference/packages.md'),
    ...Object.assign({}, ...PACKAGES.map(({ name }) => examplesOf(`packages/${name}/README.md`)))
  }
  t.ok(Object.keys(examples).length > 2)
  const files = { 'entries.ts': importsOfAll(), 'backend.ts': BACKEND, ...examples }
  t.equal(compile('node', { module: 'nodenext', types: ['node'] }, files), '')
  t.match(
    compile('wrong', { module: 'nodenext' }, { 'wrong.ts': "export * from 'gatehouse-client/no-such-entry'" }),
    'TS2307'
  )
})

const USE_API = `import { createClient } from 'gatehouse-client'
import { createApi } from './api.js'
export const { api } = createClient({ routes: createApi })
`

t.test('a strict page with generated calls and the example page compile with moduleResolution bundler', async (t) => {
  const project = join(folder, 'page')
  mkdirSync(project, { recursive: true })
  cpSync(join(ROOT, 'examples/openapi.yaml'), join(folder, 'openapi.yaml'))
  run(folder, join(folder, 'node_modules/.bin/gatehouse'), 'client-api', 'openapi.yaml', '-o', 'page/api.ts')
  const example = readFileSync(join(ROOT, 'examples/page/main.ts'), 'utf8')
  const files = { 'entries.ts': importsOfAll(), 'use-api.ts': USE_API, 'main.ts': example }
  t.equal(compile('page', { module: 'esnext', moduleResolution: 'bundler', types: ['node'] }, files), '')
  t.ok(readdirSync(project).includes('api.ts'))
})
