import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { readRoutesFile } from '../../src/gateway/custom-routes/custom-routes.js'

const page = readFileSync(join(ROOT, 'docs/how-to/custom-routes.md'), 'utf8')

const block = (language: string): string => new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(page)?.[1] ?? ''

t.test('the gateway accepts the OpenAPI document of the guide to custom routes', async (t) => {
  const file = join(t.testdir(), 'openapi.yaml')
  writeFileSync(file, block('yaml'))
  const { description, warnings } = await readRoutesFile(file)
  t.match(description?.paths, [
    { template: '/api/carts', operations: [{ method: 'GET', access: 'user' }, { method: 'POST' }] }
  ])
  t.same(warnings, [])
})

t.test('the gateway accepts the route tables of the guide to custom routes', async (t) => {
  const file = join(t.testdir(), 'routes.mjs')
  // The package name refers to the build, not to the sources or the compiled test.
  const routes = new URL('../../src/routes.js', import.meta.url).href
  writeFileSync(file, block('js').replace('gatehouse-server/routes', routes))
  const { tables, warnings } = await readRoutesFile(file)
  t.match(tables.at(-1), {
    domain: 'carts',
    rows: [{ method: 'GET', access: 'user' }, { method: 'POST', path: '/api/carts' }, { path: '/api/carts/:id' }]
  })
  t.same(warnings, [])
})
