import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { importsOf, importTarget } from './import-graph.js'

/** Files and imports are paths such as `src/ui/*`, where `/*` is one folder and `/**` all below it, or `node:fs`, `npm:ws`. */
interface Rule {
  readonly files: string
  readonly allowed: readonly string[]
  /** Of the allowed ones. */
  readonly forbidden?: readonly string[]
  readonly message: string
}

const PACKAGES = ['npm:**', 'node:**']
const FASTIFY = ['npm:fastify', 'npm:fastify-plugin', 'npm:@fastify/**']
const TYPEBOX = ['npm:@sinclair/typebox', 'npm:@sinclair/typebox/**']
const MANIFEST = 'package.json'

const CORE = 'src/relay/core'
/** What every file of the core may import: clock, token check and logger are passed in. */
const FOR_CORE = ['log', 'bounded-map', 'is-object', 'json-or-undefined', 'linear-regexp', 'token-errors'].map(
  (name) => `src/shared/${name}.ts`
)

/** A folder of the core imports itself, the files of core/ except relay.ts, and the named folders. */
const coreFolder = (name: string, folders: readonly string[], others: readonly string[] = []): Rule => ({
  files: `${CORE}/${name}/*`,
  allowed: [`${CORE}/*`, ...[name, ...folders].map((folder) => `${CORE}/${folder}/*`), ...FOR_CORE, ...others],
  forbidden: [`${CORE}/relay.ts`],
  message: `${name} imports of the core's folders only: ${folders.join(', ') || 'none'}`
})

const CLIENT_PACKAGES = [
  '@sinclair/typebox',
  '@sinclair/typebox/errors',
  '@sinclair/typebox/value',
  'centrifuge',
  'vue-router'
].map((name) => `npm:${name}`)
const CLIENT_MESSAGE = 'the client runs in a browser whose policy forbids code made from text: schemas and few packages'
const FOR_ADMIN = ['src/relay/admin/contract.ts', 'src/ui/*', 'npm:vue', 'npm:uplot', 'npm:uplot/**']
const ADMIN_MESSAGE = 'the page runs in a browser: the types of the contract, the shared components, Vue and uPlot'

/** The first rule whose `files` match applies. */
const RULES: readonly Rule[] = [
  {
    files: 'src/gateway/**',
    allowed: ['src/gateway/**', 'src/openapi/**', 'src/shared/**', 'schemas/**', MANIFEST, ...PACKAGES],
    message: 'the gateway knows neither relay, client and demo nor tests'
  },
  {
    files: 'src/openapi/**',
    allowed: ['src/openapi/**', 'src/shared/**', ...PACKAGES],
    forbidden: FASTIFY,
    message: 'src/openapi imports from src/shared only'
  },
  {
    files: `${CORE}/relay.ts`,
    allowed: [`${CORE}/**`, ...FOR_CORE],
    message: 'the core imports only itself and a few helpers'
  },
  {
    files: `${CORE}/*`,
    allowed: [`${CORE}/*`, ...FOR_CORE],
    message: 'the files of core/ import only each other and a few helpers'
  },
  coreFolder('codec', []),
  coreFolder('merging', ['codec'], ['schemas/iso-time.ts']),
  coreFolder('fan-out', ['codec', 'merging']),
  coreFolder('publish', ['codec']),
  coreFolder('maps', ['codec', 'publish']),
  coreFolder('session', ['codec', 'maps', 'fan-out', 'publish']),
  coreFolder('subscribe', ['codec', 'maps', 'fan-out', 'session']),
  coreFolder('commands', ['codec', 'maps', 'publish', 'session', 'subscribe', 'fan-out']),
  coreFolder('nodes', ['session', 'subscribe', 'commands', 'fan-out']),
  {
    files: 'src/relay/engine/**',
    allowed: ['src/relay/**', 'src/shared/**', 'schemas/**', MANIFEST, ...PACKAGES],
    forbidden: [
      ...['transport', 'api', 'admin', 'workers'].map((folder) => `src/relay/${folder}/**`),
      ...['npm:ws', ...FASTIFY]
    ],
    message: "an engine imports the core's interfaces; no transports, API or HTTP libraries"
  },
  {
    files: 'src/relay/**',
    allowed: ['src/relay/**', 'src/shared/**', 'schemas/**', MANIFEST, ...PACKAGES],
    forbidden: FASTIFY,
    message: 'the relay knows neither gateway, client and demo nor tests, and Fastify belongs to the gateway'
  },
  {
    files: 'src/client/react/**',
    allowed: ['src/client/**', 'schemas/**', 'npm:react'],
    message: 'the bindings for React import the client and React only'
  },
  {
    files: 'src/client/vue/**',
    allowed: ['src/client/**', 'schemas/**', 'npm:vue'],
    message: 'the bindings for Vue import the client and Vue only'
  },
  {
    files: 'src/client/**',
    allowed: ['src/client/**', 'schemas/**', ...CLIENT_PACKAGES],
    message: CLIENT_MESSAGE
  },
  { files: 'src/ui/**', allowed: ['src/ui/*', 'npm:vue'], message: 'src/ui must not import from either page' },
  {
    files: 'src/relay-admin/vite.config.ts',
    allowed: PACKAGES,
    message: 'a build configuration imports packages only'
  },
  { files: 'src/relay-admin/*', allowed: ['src/relay-admin/**', ...FOR_ADMIN], message: ADMIN_MESSAGE },
  ...readdirSync(join(ROOT, 'src/relay-admin'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(
      ({ name }): Rule => ({
        files: `src/relay-admin/${name}/**`,
        allowed: ['src/relay-admin/*', 'src/relay-admin/components/*', `src/relay-admin/${name}/*`, ...FOR_ADMIN],
        message: `${ADMIN_MESSAGE}; of the other folders only components`
      })
    ),
  {
    files: 'src/shared/**',
    allowed: ['src/shared/**', MANIFEST, ...PACKAGES],
    forbidden: [...FASTIFY, 'npm:ws'],
    message: 'src/shared must not import from the programs'
  },
  {
    files: 'src/**',
    allowed: ['src/**', 'schemas/**', MANIFEST, ...PACKAGES],
    message: 'the product imports neither demo nor tests'
  },
  {
    files: 'schemas/**',
    allowed: ['schemas/*', ...TYPEBOX],
    message: 'schemas import the schema library only, so that a browser can use them too'
  },
  {
    files: 'demo/web/vite.config.ts',
    allowed: ['demo/*', ...PACKAGES],
    message: 'a build configuration imports packages and plugins of the demo'
  },
  {
    files: 'demo/web/**',
    allowed: ['demo/web/**', 'demo/*', 'schemas/**', 'src/ui/*', 'npm:**'],
    message: 'the page runs in a browser: gatehouse-client by its name, schemas, src/ui and packages'
  }
]

const matches = (pattern: string, name: string): boolean => {
  if (pattern.endsWith('**')) return name.startsWith(pattern.slice(0, -2))
  if (!pattern.endsWith('/*')) return name === pattern
  return name.startsWith(pattern.slice(0, -1)) && !name.slice(pattern.length - 1).includes('/')
}

const ruleOf = (file: string): Rule | undefined => RULES.find(({ files }) => matches(files, file))

/** Why a file must not import something; undefined if it may. */
const violation = (file: string, imported: string): string | undefined => {
  const rule = ruleOf(file)
  const hasMatch = (patterns: readonly string[] = []): boolean => patterns.some((pattern) => matches(pattern, imported))
  if (rule === undefined || (hasMatch(rule.allowed) && !hasMatch(rule.forbidden))) return undefined
  return `${file} imports ${imported}: ${rule.message}`
}

const FILES = ['src', 'schemas', 'demo/web'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(?:ts|vue)$/.test(file))
    .map((file) => `${folder}/${file}`)
)

t.test('source files import in the permitted directions only', async (t) => {
  t.same(FILES.flatMap((file) => importsOf(file).map((imported) => violation(file, imported) ?? [])).flat(), [])
})

t.test('each rule has files, and each file has a rule', async (t) => {
  t.same(
    RULES.map(({ files }) => files).filter((files) => !FILES.some((file) => ruleOf(file)?.files === files)),
    []
  )
  t.same(
    FILES.filter((file) => ruleOf(file) === undefined),
    []
  )
})

const EXAMPLES: readonly (readonly [file: string, specifier: string, isAllowed: boolean])[] = [
  ['src/gateway/a.ts', '../relay/core/relay.js', false],
  ['src/gateway/a.ts', '../../demo/backend/main.js', false],
  ['src/gateway/plugins/a.ts', 'fastify', true],
  ['src/openapi/a.ts', '@fastify/cookie', false],
  ['src/relay/core/codes.ts', './codec/json.js', false],
  ['src/relay/core/codes.ts', 'fs', false],
  ['src/relay/core/relay.ts', './nodes/survey-handlers.js', true],
  ['src/relay/core/codec/a.ts', '../relay.js', false],
  ['src/relay/core/codec/a.ts', '../codes.js', true],
  ['src/relay/core/merging/a.ts', '../../../../schemas/iso-time.js', true],
  ['src/relay/core/fan-out/a.ts', '../../../../schemas/iso-time.js', false],
  ['src/relay/core/session/a.ts', '../subscribe/subscribe.js', false],
  ['src/relay/engine/a.ts', '../core/engine.js', true],
  ['src/relay/engine/redis/a.ts', 'ws', false],
  ['src/client/a.ts', '@sinclair/typebox/compiler', false],
  ['src/client/a.ts', 'vue', false],
  ['src/client/vue/a.ts', 'vue', true],
  ['src/relay-admin/pages/a.ts', '../../relay/core/relay.js', false],
  ['src/cli/a.ts', '../../demo/backend/main.js', false],
  ['schemas/a.ts', '../src/shared/env.js', false],
  ['demo/web/a.ts', '../../src/client/index.js', false],
  ['demo/web/a.ts', '../backend/route.js', false],
  ['demo/web/pages/A.vue', 'node:fs', false],
  ['demo/web/pages/A.vue', 'gatehouse-client/buildings', true]
]

for (const [file, specifier, isAllowed] of EXAMPLES) {
  t.test(`the rules ${isAllowed ? 'allow' : 'forbid'} ${file} to import ${specifier}`, async (t) => {
    t.equal(violation(file, importTarget(file, specifier)) === undefined, isAllowed)
  })
}
