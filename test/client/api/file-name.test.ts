import fc from 'fast-check'
import t from 'tap'
import { fileName } from '../../../src/client/api/file-name.js'
import { checkProperty } from '../../helper/property.js'

const CASES: readonly (readonly [header: string | null, expected: string | null])[] = [
  [null, null],
  ['', null],
  ['attachment', null],
  ['attachment; filename=people.csv', 'people.csv'],
  ['attachment; filename="all people.csv"', 'all people.csv'],
  ['attachment; filename="a\\"b.csv"', 'a"b.csv'],
  ["attachment; filename=people.csv; filename*=UTF-8''na%C3%AFve.csv", 'naïve.csv'],
  ["attachment; filename=people.csv; filename*=UTF-8''%E0%A4%A", 'people.csv'],
  ['attachment; filename="../../etc/passwd"', 'passwd'],
  ['attachment; filename="C:\\\\temp\\\\a.csv"', 'a.csv'],
  ["attachment; filename*=UTF-8''..%2F..", null],
  ['attachment; filename=".."', null],
  ['attachment; filename="   "', null]
]

t.test('the name of a download', async (t) => {
  for (const [header, expected] of CASES) {
    t.test(`the file name is ${JSON.stringify(expected)} for ${JSON.stringify(header)}`, async (t) => {
      t.equal(fileName(header), expected)
    })
  }

  t.test('the file name never contains a folder', async (t) => {
    const headers = fc.oneof(
      fc.string(),
      fc.string().map((name) => `attachment; filename="${name}"`),
      fc.string().map((name) => `attachment; filename*=UTF-8''${encodeURIComponent(name)}`)
    )
    await checkProperty(
      t,
      fc.property(headers, (header) => !/[/\\]/.test(fileName(header) ?? ''))
    )
  })
})
