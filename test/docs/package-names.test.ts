import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import packageFile from '../../package.json' with { type: 'json' }
import { PACKAGES } from '../../scripts/lib/package-contents.js'
import { ROOT } from '../../scripts/lib/root.js'

/** Entries of our packages, such as `gatehouse-client/schemas/*`. */
const ENTRIES = PACKAGES.flatMap(({ name, manifest }) => {
  const { exports = {} }: { exports?: object } = manifest(packageFile)
  return Object.keys(exports).map((entry) => entry.replace('.', name))
})

const { dependencies, devDependencies, optionalDependencies } = packageFile
/** Test runners of readers, beside the installed packages. */
const DEPENDENCIES = ['vitest', ...Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })]

/** Commands that have another name than their package, which is a dependency. */
const COMMANDS = ['tsc', 'biome']

const OUR_NAMES = PACKAGES.map(({ name }) => name)

const FOLDERS = ['docs', 'examples']
const FILE = /\.(?:md|js|mjs|jsx|ts|tsx|vue|html)$|(?:^|\/)package\.json$/

const files = [
  'README.md',
  'CONTRIBUTING.md',
  ...PACKAGES.map(({ readme }) => readme),
  ...FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => FILE.test(name) && !/node_modules|\bdist\b/.test(name))
      .map((name) => `${folder}/${name}`)
  )
]

const packageOf = (name: string): string => name.split('/', name.startsWith('@') ? 2 : 1).join('/')

/** Names in the arguments of a command, without options, files, variables and versions. */
const namesIn = (words: string): string[] =>
  words
    .split(/\s+/)
    .filter((word) => /^@?[a-z][\w./-]*(?:@[\w.^~>=<*-]+)?$/.test(word) && !/^\w.*\.(?:tgz|js|md|ya?ml)$/.test(word))
    .map((word) => word.replace(/(?!^)@.*$/, ''))

const unknownInstalls = (text: string): string[] =>
  [...text.matchAll(/\b(?:npm (?:install|i|add)|(?:pnpm|yarn|bun) add)\b([^\n`|&;)#]*)/g)]
    .flatMap(([, words = '']) => namesIn(words))
    .filter((name) => !OUR_NAMES.includes(name) && !DEPENDENCIES.includes(name))

/**
 * `npx gatehouse` would fetch the package of another project where `gatehouse-server` is not installed: a page has it behind an
 * installation, or if it continues in the project of the quickstart, and names the package.
 */
const unknownCommands = (text: string): string[] => {
  const installed =
    /npm install[^\n]*(?:gatehouse-server|gatehouse-\*\.tgz|dist\/packages\/\*\.tgz)|in the project of the \[quickstart\]/.exec(
      text
    )?.index ?? Infinity
  return [...text.matchAll(/\b(?:npx|npm exec|npm create|pnpm dlx|bunx)((?: --?[\w=-]+)*) ([@\w./-]+)/g)]
    .filter(({ index, 2: name = '' }) => {
      if (name === 'gatehouse') return index < installed || !text.includes('gatehouse-server')
      return ![...OUR_NAMES, ...DEPENDENCIES, ...COMMANDS].includes(name)
    })
    .map(([command]) => command)
}

const matches = (entry: string, name: string): boolean =>
  entry.endsWith('/*') ? name.startsWith(entry.slice(0, -1)) : entry === name

/** Dart imports its packages in the same form. */
const DART = /^(?:dart|package):/

const isKnownImport = (name: string): boolean => {
  if (/^[./#]/.test(name) || DART.test(name) || isBuiltin(name)) return true
  if (OUR_NAMES.includes(packageOf(name))) return ENTRIES.some((entry) => matches(entry, name))
  return DEPENDENCIES.includes(packageOf(name))
}

const IMPORT =
  /^[ \t]*(?:import (?:[^\n'"]*? from )?|export [^\n'"]*? from )['"]([^'"\n]+)['"]|\b(?:require|import)\(['"]([^'"\n]+)['"]\)/gm
const IMPORT_END = /^\} from ['"]([^'"\n]+)['"]/gm

const unknownImports = (text: string): string[] =>
  [...text.matchAll(IMPORT), ...text.matchAll(IMPORT_END)]
    .map(([, name = '', called = '']) => name || called)
    .filter((name) => !isKnownImport(name))

const unknownDependencies = (text: string): string[] => {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(text)
  return Object.keys({ ...dependencies, ...devDependencies }).filter(
    (name) => !OUR_NAMES.includes(name) && !DEPENDENCIES.includes(name)
  )
}

/** Code blocks in languages that do not import npm packages, such as Dart. */
const OTHER_LANGUAGE = /^```(?!(?:m?[jt]sx?|vue|html|sh|json)\b)\w+\n.*?^```$/gms

const unknownNames = (file: string, text: string): string[] =>
  file.endsWith('package.json')
    ? unknownDependencies(text)
    : [...unknownInstalls(text), ...unknownCommands(text), ...unknownImports(text)]

t.test('docs and examples name only packages and entries of this project and its dependencies', async (t) => {
  t.ok(files.length > 70)
  for (const file of files)
    t.same(unknownNames(file, readFileSync(join(ROOT, file), 'utf8').replaceAll(OTHER_LANGUAGE, '')), [], file)
})

t.test('a package of another project in docs is found', async (t) => {
  for (const [text, names] of [
    ['`npm install gatehouse` installs it', ['gatehouse']],
    ['npm install -D "$GATEHOUSE"/dist/packages/*.tgz ./a.tgz vite@7.3.8 no-such-package@^1', ['no-such-package']],
    ['npm install gatehouse-server\nnpx gatehouse relay', []],
    ['npx gatehouse relay', ['npx gatehouse']],
    ['This page continues in the project of the [quickstart](a.md).\n\nnpx gatehouse relay', ['npx gatehouse']],
    ['`gatehouse-server`, in the project of the [quickstart](a.md).\n\nnpx gatehouse relay', []],
    ['`gatehouse-server`: `npm install ./gatehouse-*.tgz`\nnpx gatehouse relay', []],
    ['npx --yes gatehouse init\nnpm install gatehouse-server', ['npx --yes gatehouse']],
    ['npx gatehouse-server init && npx vite build', []],
    ['npm create gatehouse', ['npm create gatehouse']],
    ["import { negotiate } from 'gatehouse/backend'", ['gatehouse/backend']],
    ["import {\n  negotiate\n} from 'gatehouse'", ['gatehouse']],
    ["import 'gatehouse-client/no-such-entry'", ['gatehouse-client/no-such-entry']],
    ["import { zoneBody } from 'gatehouse-client/schemas/zones'\nimport { readFile } from 'node:fs/promises'", []],
    ["const { buildRelay } = require('gatehouse')", ['gatehouse']]
  ] as const)
    t.same(unknownNames('page.md', text), names, text)
  t.same(unknownNames('package.json', '{"dependencies":{"gatehouse":"*","gatehouse-client":"*"}}'), ['gatehouse'])
})
