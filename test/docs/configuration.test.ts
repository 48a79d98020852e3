import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { demoSettings } from '../../demo/backend/config.js'
import { HELM_VALUES_PAGE, helmValues, withCurrentValues } from '../../scripts/lib/helm-values-docs.js'
import {
  RELAY_CONFIG_SCHEMA,
  RELAY_FILE_PAGE,
  relayConfigSchemaText,
  relayOptions,
  withCurrentOptions
} from '../../scripts/lib/relay-options-docs.js'
import { ROOT } from '../../scripts/lib/root.js'
import { CONFIGURATION_PAGE, withCurrentTables } from '../../scripts/lib/settings-docs.js'
import { GATEWAY_ERROR_CODES } from '../../src/gateway/errors.js'
import { gatewaySettings } from '../../src/gateway/settings.js'
import { relayConfig } from '../../src/relay/config/config.js'
import { relaySettings } from '../../src/relay/config/settings.js'
import { publisherSettings } from '../../src/shared/publisher.js'

const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

const SECRETS = { REALTIME_HMAC_SECRET: 'a', REALTIME_API_KEY: 'b' }

/** The relay's configuration with this content of the file. */
const configOf = (file: string) => relayConfig({ NODE_ENV: 'test', ...SECRETS, RELAY_CONFIG: 'relay.json' }, () => file)

t.test('the configuration page has the generated tables of settings', async (t) => {
  const page = readFileSync(CONFIGURATION_PAGE, 'utf8')
  t.equal(withCurrentTables(page), page, 'run `npm run docs`')
})

t.test('the page of the relay config file has the generated tables of options', async (t) => {
  const page = readFileSync(RELAY_FILE_PAGE, 'utf8')
  t.equal(withCurrentOptions(page), page, 'run `npm run docs`')
  t.match(page, /^\| `force_recovery` \| `false` \|/m)
  t.match(page, /^\| `client\.ping_interval` \| `25s` \|/m)
})

t.test('the page of Helm values has the generated tables', async (t) => {
  const page = readFileSync(HELM_VALUES_PAGE, 'utf8')
  t.equal(withCurrentValues(page), page, 'run `npm run docs`')
})

t.test('values.yaml describes every value of the chart and has all values of the schema', async (t) => {
  const values = helmValues()
  t.ok(values.length > 50)
  t.same(
    values.filter(({ about }) => about === '').map(({ path }) => path),
    [],
    'each has a comment'
  )
  const paths = new Set(values.map(({ path }) => path))
  t.same(
    schemaPaths(JSON.parse(read('deploy/helm/values.schema.json'))).filter((path) => !paths.has(path)),
    // Helm itself passes this one to every chart.
    ['global']
  )
})

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, ObjectSchema>>
}

const schemaPaths = ({ properties }: ObjectSchema, prefix = ''): string[] =>
  properties === undefined
    ? [prefix]
    : Object.entries(properties).flatMap(([name, schema]) =>
        schemaPaths(schema, prefix === '' ? name : `${prefix}.${name}`)
      )

t.test('a value that the schema does not have is found', async (t) => {
  const schema = { properties: { image: { properties: { tag: { type: 'string' } } } } }
  t.match(helmValues("image:\n  # The version.\n  tag: ''\n", schema), [{ path: 'image.tag', about: 'The version.' }])
  t.throws(() => helmValues("image:\n  name: ''\n", schema), { message: 'values.schema.json does not have image.name' })
})

/** Every JSON block of a page that has sections of the relay's file. */
const relayExamples = (page: string): string[] => {
  const sections = new Set(Object.keys(JSON.parse(relayConfigSchemaText()).properties))
  return [...page.matchAll(/^ *```json\n(.*?)^ *```$/gms)]
    .map(([, block = '']) => block)
    .filter((block) => Object.keys(JSON.parse(block)).every((name) => sections.has(name)))
}

t.test('the relay accepts every example of its config file in the docs', async (t) => {
  const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    // Its first example is for Centrifugo; the page has a test of its own.
    .filter((name) => name.endsWith('.md') && !name.endsWith('migrate-from-centrifugo.md'))
    .flatMap((name) => relayExamples(read(join('docs', name))).map((example) => [name, example] as const))
  t.ok(pages.length > 3)
  for (const [name, example] of pages) t.doesNotThrow(() => configOf(example), name)
})

/** The entry of a list in which an option is set. */
const ENTRY = { name: 'chat', endpoint: 'http://backend' }
const FIELDS_OF_ENTRIES: Readonly<Record<string, readonly (keyof typeof ENTRY)[]>> = {
  namespaces: ['name'],
  proxies: ['name', 'endpoint']
}

/** Sets the value at a path such as `client.token.audience`, or in the only entry of a list. */
const setOption = (file: Record<string, unknown>, path: string, value: unknown): void => {
  const names = path.replaceAll('[].', '.0.').split('.')
  const last = names.pop() ?? ''
  const parent = names.reduce<Record<string, unknown>>((section, name) => {
    const fields = FIELDS_OF_ENTRIES[name]
    section[name] ??= fields === undefined ? {} : [Object.fromEntries(fields.map((field) => [field, ENTRY[field]]))]
    return section[name] as Record<string, unknown> // the schema has an object or a list at every path but the last
  }, file)
  parent[last] = value
}

t.test('the relay uses the default of every option that the schema documents', async (t) => {
  const file: Record<string, unknown> = {}
  const options = relayOptions().filter(({ schema }) => schema.default !== undefined)
  for (const { path, schema } of options) setOption(file, path, schema.default)
  t.ok(options.length > 80)
  const namespaces = [{ name: 'chat' }]
  t.same(configOf(JSON.stringify(file)), configOf(JSON.stringify({ channel: { namespaces }, rpc: { namespaces } })))
})

t.test('docs/relay-config.schema.json is the generated schema', async (t) => {
  t.equal(readFileSync(RELAY_CONFIG_SCHEMA, 'utf8'), relayConfigSchemaText(), 'run `npm run docs`')
})

t.test('.env.example', async (t) => {
  const names = [...read('.env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name)

  t.test('.env.example names every setting once, and nothing else', async (t) => {
    const known = new Set([gatewaySettings, relaySettings, publisherSettings, demoSettings].flatMap(Object.keys))
    t.same(names.toSorted(), [...known].toSorted())
  })
})

t.test('the hardening checklist names existing settings and options only', async (t) => {
  const page = read('docs/how-to/harden.md')
  const known = new Set<string>([...Object.keys({ ...gatewaySettings, ...relaySettings }), ...GATEWAY_ERROR_CODES])
  const named = [...page.matchAll(/`([A-Z]+(?:_[A-Z]+)+)\b/g)].map(([, name = '']) => name)
  t.ok(named.length > 25)
  t.same(
    named.filter((name) => !known.has(name) && !known.has(name.replace(/_FILE$/, ''))),
    []
  )
  const options = relayOptions().map(({ path }) => path)
  const namedOptions = [...page.matchAll(/`(client\.\w+)`/g)].map(([, path = '']) => path)
  t.same(
    namedOptions.filter((path) => !options.some((option) => option === path || option.startsWith(`${path}.`))),
    []
  )
})
