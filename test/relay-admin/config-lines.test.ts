import t from 'tap'
import { configSections, matchingSections } from '../../src/relay-admin/config-lines.js'

t.test('configuration sections', async (t) => {
  t.test('plain values come before nested sections', async (t) => {
    const config = { client: { token: { key: '(hidden)' }, ttl: null }, engine: 'memory', rooms: {} }
    t.same(configSections(config), [
      { name: 'general', lines: [{ name: 'engine', value: 'memory' }] },
      { name: 'client', lines: [{ name: 'ttl', value: 'not set' }] },
      { name: 'client.token', lines: [{ name: 'key', value: '(hidden)' }] }
    ])
  })

  const VALUES: readonly (readonly [unknown, string])[] = [
    [true, 'yes'],
    [false, 'no'],
    ['', 'empty'],
    [0, '0'],
    [[], 'none'],
    [['a', 'b'], 'a, b'],
    [[{ name: 'floor' }], '{"name":"floor"}']
  ]
  for (const [value, text] of VALUES) {
    t.test(`${JSON.stringify(value)} is shown as "${text}"`, async (t) => {
      t.equal(configSections({ value })[0]?.lines[0]?.value, text)
    })
  }

  t.test('search finds sections and options in any letter case', async (t) => {
    const sections = configSections({ engine: 'memory', client: { token: '(hidden)', ping: 25 } })
    const found = (search: string): string[] =>
      matchingSections(sections, search).flatMap(({ name, lines }) => lines.map((line) => `${name}.${line.name}`))
    t.same(found(''), ['general.engine', 'client.token', 'client.ping'])
    t.same(found('CLIENT'), ['client.token', 'client.ping'])
    t.same(found('hidden'), ['client.token'])
    t.same(found('nothing'), [])
  })
})
