import fc from 'fast-check'
import t from 'tap'
import { onOneLine } from '../../../../src/relay/core/codec/json.js'
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
    ['{"x":"\\\\","data":null}', 'null', 'a backslash before']
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
