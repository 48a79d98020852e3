import t from 'tap'
import { ROOT } from '../../../scripts/lib/root.js'
import { ALLOWED_LICENCES, licenceOf, licenceTable, productionSbom } from '../../../scripts/lib/sbom.js'

t.test('the software bill of materials of production', async (t) => {
  const { components } = productionSbom(ROOT)
  const names = components.map(({ name }) => name)

  t.test('all packages of production have allowed licences', async (t) => {
    t.same(
      components.filter((component) => !ALLOWED_LICENCES.has(licenceOf(component))),
      []
    )
  })

  t.test(
    'the bill of materials has direct and transitive dependencies, also those that development packages share',
    async (t) => {
      for (const name of ['fastify', '@fastify/cookie', 'ws', 'ajv', 'fastq']) t.ok(names.includes(name), name)
    }
  )

  t.test('the bill of materials has no development packages', async (t) => {
    for (const name of ['tap', 'typescript', 'gatehouse']) t.notOk(names.includes(name), name)
  })
})

t.test('licenceOf returns none for a package without a licence', async (t) => {
  const component = { name: 'a', version: '1.0.0' }
  t.equal(licenceOf(component), 'none')
  t.equal(licenceOf({ ...component, licenses: [{ license: { id: 'MIT' } }] }), 'MIT')
  t.equal(licenceOf({ ...component, licenses: [{ license: { name: 'SEE LICENSE IN x' } }] }), 'SEE LICENSE IN x')
  t.equal(licenceOf({ ...component, licenses: [{ expression: 'MIT OR GPL-2.0' }] }), 'MIT OR GPL-2.0')
})

t.test('a missing, unknown or copyleft licence is not allowed', async (t) => {
  for (const licence of ['none', 'GPL-3.0-only', 'MIT OR GPL-2.0', 'SEE LICENSE IN x'])
    t.notOk(ALLOWED_LICENCES.has(licence), licence)
})

t.test('the licence table has one row per package', async (t) => {
  t.equal(
    licenceTable([{ name: '@b/c', version: '1.2.3', licenses: [{ license: { id: 'MIT' } }] }]),
    '| package | version | licence |\n|---|---|---|\n| `@b/c` | 1.2.3 | MIT |\n'
  )
})
