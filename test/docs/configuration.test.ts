import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { demoSettings } from '../../demo/backend/config.js'
import { ROOT } from '../../scripts/lib/root.js'
import {
  CONFIGURATION_PAGE,
  RELAY_CONFIG_SCHEMA,
  relayConfigSchemaText,
  withCurrentTables
} from '../../scripts/lib/settings-docs.js'
import { gatewaySettings } from '../../src/gateway/config.js'
import { relayConfig } from '../../src/relay/config/config.js'
import { relaySettings } from '../../src/relay/config/settings.js'
import { publisherSettings } from '../../src/shared/publisher.js'

const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

t.test('the configuration page', async (t) => {
  t.test('the configuration page has the generated tables of settings', async (t) => {
    const page = readFileSync(CONFIGURATION_PAGE, 'utf8')
    t.equal(withCurrentTables(page), page, 'run `npm run docs`')
  })

  t.test('the relay accepts the config file of the configuration page', async (t) => {
    const [, example = ''] = /```json\n([^`]*)```/.exec(read('docs/reference/configuration.md')) ?? []
    const environment = { REALTIME_HMAC_SECRET: 'a', REALTIME_API_KEY: 'b', RELAY_CONFIG: 'example.json' }

    t.same([...relayConfig(environment, () => example).channels.namespaces.keys()], ['floor'])
  })
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
