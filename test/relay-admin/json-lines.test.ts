import t from 'tap'
import { foldedFrom, indentedJson, jsonLines, matchingLines, visibleLines } from '../../src/relay-admin/json-lines.js'
import { required } from '../helper/required.js'

const linesOf = (text: string) => required(jsonLines(text))
const texts = (text: string): string[] => linesOf(text).map((line) => line.text)

t.test('the lines of a JSON text', async (t) => {
  t.test('an object or list has its number of members and its last line', async (t) => {
    t.same(
      linesOf(' {"a": [1, {"b": null}], "c": [ ] } ').map(({ depth, text, size, end }) => [depth, text, size, end]),
      [
        [0, '{', 2, 8],
        [1, '"a": [', 2, 6],
        [2, '1,', 0, 0],
        [2, '{', 1, 5],
        [3, '"b": null', 0, 0],
        [2, '}', 0, 0],
        [1, '],', 0, 0],
        [1, '"c": []', 0, 0],
        [0, '}', 0, 0]
      ]
    )
  })

  t.test('the lines keep digits, duplicate keys and the order of keys', async (t) => {
    t.same(texts('{"2":12345678901234567890,"1":1.0,"2":-1e+9}'), [
      '{',
      '"2": 12345678901234567890,',
      '"1": 1.0,',
      '"2": -1e+9',
      '}'
    ])
  })

  t.test('the lines decode characters that JSON need not escape', async (t) => {
    t.same(texts('["\\u00e9\\n", "a\\\\", "\\"]", ":,{"]'), ['[', '"é\\n",', '"a\\\\",', '"\\"]",', '":,{"', ']'])
  })

  for (const text of ['', '{', '[1', 'eyJhIjox', '{"a":1}x']) {
    t.test(`"${text}" is not JSON`, async (t) => t.equal(jsonLines(text), null))
  }

  for (const text of ['1', '"a"', 'null', '[]', '{}']) {
    t.test(`${text} is one line`, async (t) => t.same(texts(text), [text]))
  }

  t.test('the lines of 100,000 nested lists are made without recursion', async (t) => {
    const depth = 100_000
    const lines = linesOf(`${'['.repeat(depth)}"deep"${']'.repeat(depth)}`)
    t.equal(lines.length, 2 * depth + 1)
    t.same(matchingLines(lines, 'DEEP'), [depth])
  })
})

t.test('indented JSON', async (t) => {
  const VALUES = [1, 'a"b\n', [], {}, [1, [2, { a: [] }]], { a: { b: {}, 'c d': [null, true] }, e: 'f' }]
  for (const value of VALUES) {
    const text = JSON.stringify(value)
    t.test(`${text} is indented like JSON.stringify does`, async (t) =>
      t.equal(indentedJson(linesOf(text)), JSON.stringify(value, null, 2))
    )
  }

  t.test('indented JSON of 30,000 levels does not grow with the square of the depth', async (t) => {
    const text = indentedJson(linesOf(`${'['.repeat(30_000)}${']'.repeat(30_000)}`))
    t.ok(text.length < 4_000_000)
    t.equal(linesOf(text).length, 2 * 30_000 - 1)
  })
})

t.test('folded lines', async (t) => {
  const lines = linesOf('{"data":[{"id":"tx-1","a b":2},{"id":"tx-2"}],"more":{}}')

  t.test('folded objects and lists hide their lines', async (t) => {
    t.equal(visibleLines(lines, new Set()).length, lines.length)
    t.same(visibleLines(lines, new Set([2])), [0, 1, 2, 6, 7, 8, 9, 10, 11])
    t.same(visibleLines(lines, foldedFrom(lines, 1)), [0, 1, 10, 11])
  })

  t.test('search finds keys and values in any letter case', async (t) => {
    t.same(matchingLines(lines, 'TX-'), [3, 7])
    t.same(matchingLines(lines, ''), [])
  })
})
