import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { ROOT } from './root.js'

/** The fields of the project's package.json that the packages take over. */
export interface Project {
  readonly version: string
  readonly type: string
  readonly license: string
  readonly engines: Readonly<Record<string, string>>
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
  readonly overrides: { readonly 'light-my-request': string }
}

export interface Package {
  readonly name: string
  readonly description: string
  readonly keywords: readonly string[]
  readonly readme: string
  /** Files and folders of `dist`, with their places in the package. */
  readonly content: (project: Project) => Readonly<Record<string, string>>
  /** Folders of the project that are not a part of its code, with their places in the package. */
  readonly examples?: Readonly<Record<string, string>>
  /** A module of `dist` that is bundled with all that it imports, for pages without a build step: the file `browser.js`. */
  readonly bundled?: string
  /** Without `dependencies`, which are the packages that the content imports. */
  readonly manifest: (project: Project) => object
  /** Dependencies that no file imports, with their versions. */
  readonly pinned?: (project: Project) => Readonly<Record<string, string>>
  /** Further manifests with the fields of the project that they contain. */
  readonly nested?: Readonly<Record<string, readonly (keyof Project)[]>>
}

/** Later versions in the range of these do not run on Node.js 20 (docs/reference/dependencies.md). */
const HELD_BACK = ['@fastify/cookie', '@fastify/static', 'light-my-request']

/** A range, so that an application shares packages with others and receives their fixes. */
export const rangeOf = (name: string, version: string): string => (HELD_BACK.includes(name) ? version : `^${version}`)

/** The files of the entries, which are beside the folders. */
const entryFiles = (exports: Project['exports']): Record<string, string> =>
  Object.fromEntries(
    Object.values(exports)
      .flatMap(({ types, default: code }) => [types, code])
      .map((path) => [path.replace('./dist/', ''), path])
  )

/** An entry and the files that it imports, with their types. */
const filesFrom = (entry: string): Record<string, string> => {
  const found = new Set<string>()
  const follow = (file: string): void => {
    const path = join(ROOT, 'dist', file)
    if (found.has(file) || !existsSync(path)) return
    found.add(file)
    for (const { fileName: specifier } of ts.preProcessFile(readFileSync(path, 'utf8')).importedFiles) {
      if (!specifier.startsWith('.')) continue
      const imported = join(file, '..', specifier)
      follow(imported)
      follow(imported.replace(/\.js$/, '.d.ts'))
    }
  }
  follow(`${entry}.js`)
  follow(`${entry}.d.ts`)
  return Object.fromEntries([...found].map((file) => [file, file]))
}

const entry = (path: string) => ({ types: `./${path}.d.ts`, default: `./${path}.js` })

const optionalPeers = (ranges: Readonly<Record<string, string>>) => ({
  peerDependencies: ranges,
  peerDependenciesMeta: Object.fromEntries(Object.keys(ranges).map((name) => [name, { optional: true }]))
})

/** `gatehouse init` copies files of these folders. */
export const INIT_EXAMPLES = ['examples/quickstart', 'examples/orders', 'examples/react']

/** Whether a file of an example is not installed or built. */
export const isExampleSource = (path: string): boolean => !/[\\/](?:node_modules|dist)$/.test(path)

const SERVER: Package = {
  name: 'gatehouse-server',
  readme: 'src/cli/README.md',
  description: 'A backend-for-frontend gateway and a realtime relay that is compatible with Centrifugo, as one command',
  keywords: ['backend-for-frontend', 'bff', 'gateway', 'csrf', 'session', 'openid-connect', 'websocket', 'pubsub'],
  content: ({ exports }) => ({
    ...entryFiles(exports),
    'src/cli': 'dist/src/cli',
    'src/gateway': 'dist/src/gateway',
    'src/openapi': 'dist/src/openapi',
    'src/relay': 'dist/src/relay',
    'src/shared': 'dist/src/shared',
    schemas: 'dist/schemas',
    'relay-admin': 'dist/relay-admin'
  }),
  examples: Object.fromEntries(INIT_EXAMPLES.map((folder) => [folder, folder])),
  manifest: ({ engines, bin, exports, optionalDependencies }) => ({
    engines,
    bin,
    exports,
    // For tracing. Peers, because npm would install optional dependencies for everybody.
    ...optionalPeers(
      Object.fromEntries(Object.entries(optionalDependencies).map(([name, version]) => [name, rangeOf(name, version)]))
    )
  }),
  // Overrides do not reach the projects that install the package.
  pinned: ({ overrides: { 'light-my-request': version } }) => ({ 'light-my-request': version }),
  // The programs import their version from here. Entry points in it would be paths without a file.
  nested: { 'dist/package.json': ['version', 'type', 'optionalDependencies'] }
}

const CLIENT: Package = {
  name: 'gatehouse-client',
  readme: 'src/client/README.md',
  description: 'Browser library of Gatehouse: typed API calls, session, route guards and realtime subscriptions',
  keywords: ['api-client', 'session', 'csrf', 'realtime', 'websocket', 'centrifugo', 'browser'],
  content: () => ({ 'src/client': 'src/client', schemas: 'schemas' }),
  bundled: 'src/client/index.js',
  manifest: ({ devDependencies }) => ({
    sideEffects: false,
    exports: {
      '.': entry('src/client/index'),
      './browser': { types: './src/client/index.d.ts', default: './browser.js' },
      './buildings': entry('src/client/buildings/index'),
      './react': entry('src/client/react/index'),
      './testing': entry('src/client/testing/index'),
      './vue': entry('src/client/vue/index'),
      './vue-router': entry('src/client/vue-router'),
      './schemas/*': entry('schemas/*')
    },
    ...optionalPeers({
      react: '>=18',
      vue: '>=3.3',
      'vue-router': `>=${Number.parseInt(devDependencies['vue-router'] ?? '', 10) - 1}`
    })
  })
}

const BACKEND: Package = {
  name: 'gatehouse-backend',
  readme: 'src/backend/README.md',
  description: 'For Node.js backends behind Gatehouse: publish to the relay, negotiate connections, answer its events',
  keywords: ['realtime', 'publisher', 'websocket', 'centrifugo', 'webhook'],
  content: () => filesFrom('src/backend/index'),
  manifest: ({ engines }) => ({ engines, sideEffects: false, exports: { '.': entry('src/backend/index') } })
}

export const PACKAGES: readonly Package[] = [SERVER, CLIENT, BACKEND]
