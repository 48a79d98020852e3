import t from 'tap'
import { ALLOWED_LICENCES, licenceTable, productionLicences } from '../../scripts/licences.js'
import { onlyProduction } from '../../scripts/production-bom.js'
import { ROOT } from '../../scripts/root.js'

t.test('licences of what production installs', async (t) => {
  const licensed = productionLicences(ROOT)

  t.test('are all on the list of those that may be shipped', async (t) => {
    t.same(
      licensed.filter(({ licence }) => !ALLOWED_LICENCES.has(licence)),
      []
    )
  })

  t.test('are those of all packages, the direct ones and what they bring', async (t) => {
    const names = licensed.map(({ name }) => name)
    for (const name of ['fastify', '@fastify/cookie', 'ws', 'fastq']) t.ok(names.includes(name), name)
    for (const name of ['tap', 'typescript', '']) t.notOk(names.includes(name), name)
  })
})

t.test('a licence', async (t) => {
  const licenceOf = (about: object): string | undefined => {
    const folder = t.testdir({
      'package-lock.json': JSON.stringify({
        packages: { '': {}, 'node_modules/a/node_modules/@b/c': {}, 'node_modules/d': { dev: true } }
      }),
      node_modules: {
        a: { node_modules: { '@b': { c: { 'package.json': JSON.stringify({ version: '1.2.3', ...about }) } } } }
      }
    })
    const [first] = productionLicences(folder)
    t.match(first, { name: '@b/c', version: '1.2.3' })
    return first?.licence
  }

  for (const [about, licence] of [
    [{ license: 'MIT' }, 'MIT'],
    [{ license: 'GPL-3.0-only' }, 'GPL-3.0-only'],
    [{ license: { type: 'ISC' } }, 'ISC'],
    [{ licenses: [{ type: 'MIT' }, { type: 'GPL-2.0' }] }, 'MIT OR GPL-2.0'],
    [{}, 'none']
  ] as const) {
    t.test(`of ${JSON.stringify(about)} is ${licence}`, async (t) => {
      t.equal(licenceOf(about), licence)
    })
  }

  t.test('that is not given, or not known, is not allowed', async (t) => {
    for (const licence of ['none', 'GPL-3.0-only', 'MIT OR GPL-2.0', 'SEE LICENSE IN x']) {
      t.notOk(ALLOWED_LICENCES.has(licence), licence)
    }
  })
})

t.test('the table has a line for each', async (t) => {
  t.equal(
    licenceTable([{ name: '@b/c', version: '1.2.3', licence: 'MIT' }]),
    '| package | version | licence |\n|---|---|---|\n| `@b/c` | 1.2.3 | MIT |\n'
  )
})

t.test('onlyProduction keeps what production needs, although development needs it too', async (t) => {
  const component = (name: string) => ({ 'bom-ref': `${name}@1.0.0`, name, version: '1.0.0' })
  const bom = {
    metadata: { component: { 'bom-ref': 'us@1.0.0' } },
    components: [component('ws'), component('tap')],
    dependencies: [
      { ref: 'us@1.0.0', dependsOn: ['ws@1.0.0', 'tap@1.0.0'] },
      { ref: 'tap@1.0.0', dependsOn: ['ws@1.0.0'] },
      { ref: 'ws@1.0.0', dependsOn: [] }
    ]
  }

  t.same(onlyProduction(bom, [{ name: 'ws', version: '1.0.0', licence: 'MIT' }]), {
    metadata: bom.metadata,
    components: [component('ws')],
    dependencies: [
      { ref: 'us@1.0.0', dependsOn: ['ws@1.0.0'] },
      { ref: 'ws@1.0.0', dependsOn: [] }
    ]
  })
})
