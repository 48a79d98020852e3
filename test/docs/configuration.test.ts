import { readFileSync } from 'node:fs'
import t from 'tap'
import { CONFIGURATION_PAGE, withCurrentTables } from '../../scripts/settings-docs.js'
import { gatewaySettings } from '../../src/gateway/config.js'

const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')

t.test('docs/configuration.md', async (t) => {
  t.test('has the tables that the code has', async (t) => {
    const page = readFileSync(CONFIGURATION_PAGE, 'utf8')
    t.equal(withCurrentTables(page), page, 'run `npm run docs`')
  })
})

t.test('.env.example', async (t) => {
  const names = [...read('.env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name)

  t.test('names every setting once, and nothing else', async (t) => {
    t.same(names.toSorted(), Object.keys(gatewaySettings).toSorted())
  })
})
