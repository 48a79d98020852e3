import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { ROOT } from '../../scripts/lib/root.js'
import { installedPackages, packedPackages } from './tarballs.js'

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
export const importsOfAll = (): string => {
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
export const compile = (name: string, options: object, files: Readonly<Record<string, string>>): string => {
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
export const examplesOf = (page: string): Record<string, string> => {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const name = page.replaceAll('/', '-')
  return Object.fromEntries(
    [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ''], index) => [`${name}-${index}.ts`, code])
  )
}
