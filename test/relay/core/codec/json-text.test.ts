import fc from 'fast-check'
import t from 'tap'
import { hasTooManyContainers, MAX_CONTAINERS, onOneLine } from '../../../../src/relay/core/codec/json.js'
import { MemberSearch, memberText } from '../../../../src/relay/core/codec/json-members.js'
import { conflator } from '../../../../src/relay/core/merging/keyed-list.js'
import { checkProperty } from '../../../helper/property.js'
import { required } from '../../../helper/required.js'

const DATA = new MemberSearch(['data'])

t.test('memberText', async (t) => {
  const cases: [object: string, text: string | null, title: string][] = [
    ['{"data":1}', '1', 'a number'],
    ['{"a":{"data":2},"data":[{"data":3}] }', '[{"data":3}]', 'the outer one'],
    [' { "data" : "x\\"}" , "b":1}', '"x\\"}"', 'a string with a quote and a bracket'],
    ['{"d\\u0061ta":true}', 'true', 'a name in disguise'],
    ['{"data":1,"data":2}', null, 'two of them'],
    ['{"data":1,"d\\u0061ta":2}', null, 'two of them in disguise'],
    ['{}', null, 'none'],
    ['{"a":"data"}', null, 'a value is no name'],
    ['{"data":1.50e+3}', '1.50e+3', 'as it was written'],
    ['{"x":"\\\\","data":null}', 'null', 'a backslash before'],
    ['{"data":1', null, 'an object without its end'],
    ['{"data":1,"b"}', null, 'a name without a value after it']
  ]
  for (const [object, text, title] of cases) {
    t.test(`memberText of ${object} is ${text}: ${title}`, async (t) => {
      t.equal(memberText(object, DATA), text)
    })
  }

  t.test('memberText agrees with JSON.parse', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (object, data) => {
        const text = JSON.stringify({ ...object, data, [`z${Object.keys(object)[0] ?? ''}`]: 1 }, null, 1)
        return JSON.stringify(JSON.parse(required(memberText(text, DATA)))) === JSON.stringify(JSON.parse(text).data)
      })
    )
  })
})

const lists = (count: number): string =>
  `[${Array(count - 1)
    .fill('[]')
    .join(',')}]`

const CONTAINERS: readonly (readonly [json: string, isTooMany: boolean, title: string])[] = [
  [lists(MAX_CONTAINERS), false, 'as many lists as allowed'],
  [lists(MAX_CONTAINERS + 1), true, 'one list more'],
  [JSON.stringify('["[{'.repeat(MAX_CONTAINERS)), false, 'a text of brackets and quotes']
]
for (const [json, isTooMany, title] of CONTAINERS) {
  t.test(`${title} ${isTooMany ? 'is' : 'is not'} too much to parse`, async (t) => {
    t.equal(hasTooManyContainers(json), isTooMany)
  })
}

t.test('invalid JSON', async (t) => {
  const garbage = fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ' ', 'a', 'data', ':', ',', 'é') })

  t.test('memberText terminates for invalid JSON', async (t) => {
    await checkProperty(
      t,
      fc.property(garbage, (text) => (memberText(text, DATA) ?? '').length <= text.length)
    )
  })

  t.test('conflation terminates for invalid JSON', async (t) => {
    await checkProperty(
      t,
      fc.property(garbage, (text) => {
        const list = conflator('data[].a', 'a').read(`{"data":[{"a":${text}`)
        return list === null || list.entries.length > 0
      })
    )
  })
})

t.test('onOneLine', async (t) => {
  t.test('onOneLine does not change the parsed value', async (t) => {
    const pretty = JSON.stringify({ a: ['x\n\r', { b: 1 }] }, null, 2)

    t.notMatch(onOneLine(pretty), /[\r\n]/)
    t.same(JSON.parse(onOneLine(pretty)), JSON.parse(pretty))
  })
})
