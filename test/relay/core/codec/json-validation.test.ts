import fc from 'fast-check'
import t from 'tap'
import { INVALID, skipValue, skipWhitespace } from '../../../../src/relay/core/codec/json.js'
import { LazyJsonObject } from '../../../../src/relay/core/codec/json-members.js'
import { checkProperty } from '../../../helper/property.js'

const isValid = (json: Buffer): boolean => {
  const end = skipValue(json, skipWhitespace(json, 0))
  return end !== INVALID && skipWhitespace(json, end) === json.length
}

const isParsed = (json: Buffer): boolean => {
  try {
    JSON.parse(json.toString())
    return true
  } catch {
    return false
  }
}

const agree = (json: Buffer): boolean => isValid(json) === isParsed(json)

t.test('JSON validation', async (t) => {
  const GOOD = [
    '0',
    '-0',
    '10.50e+3',
    '1E-2',
    ' \t\r\n{ "a" : [ ] , "b" : { } } ',
    '"\\u00e9\\n\\/\\\\\\""',
    '["é",true,false,null]',
    '{"a":1,"a":2}',
    '"\u007f"'
  ]
  const BAD = [
    '',
    ' ',
    '01',
    '-',
    '1.',
    '.5',
    '1e',
    '1e+',
    '+1',
    '0x1',
    'NaN',
    'tru',
    'truex',
    'nul',
    '"',
    '"\\x"',
    '"\\u12g4"',
    '"\\u123"',
    '"\\',
    '"a\nb"',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{a:1}',
    '{"a":1',
    ']',
    '1 2',
    '\ufeff1',
    '\u00a01',
    "'a'",
    '/**/1'
  ]
  for (const text of GOOD)
    t.test(`${JSON.stringify(text)} is valid JSON`, async (t) => t.ok(isValid(Buffer.from(text))))
  for (const text of BAD)
    t.test(`${JSON.stringify(text)} is not valid JSON`, async (t) => t.notOk(isValid(Buffer.from(text))))

  t.test('the validator agrees with JSON.parse on generated JSON', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.json(), fc.nat(3), (text, indent) =>
        agree(Buffer.from(JSON.stringify(JSON.parse(text), null, indent)))
      )
    )
  })

  t.test('the validator agrees with JSON.parse on almost valid JSON', async (t) => {
    const unit = fc.constantFrom(
      ...'{}[]",:\\/ \n-+.0123456789eEtrufalsn',
      '\\u00',
      'true',
      'null',
      '"a"',
      '1',
      'é',
      '\u0000'
    )
    await checkProperty(
      t,
      fc.property(fc.string({ unit }), (text) => agree(Buffer.from(text))),
      { numRuns: 20_000 }
    )
  })

  t.test('the validator agrees with JSON.parse on JSON with one changed byte', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.json(), fc.nat(), fc.nat(255), (text, index, byte) => {
        const json = Buffer.from(text)
        json[index % json.length] = byte
        return agree(json)
      }),
      { numRuns: 20_000 }
    )
  })

  t.test('the validator agrees with JSON.parse on arbitrary bytes in a string', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.uint8Array(), (bytes) => agree(Buffer.concat([Buffer.from('"'), bytes, Buffer.from('"')]))),
      { numRuns: 5000 }
    )
  })

  t.test('the validator accepts any depth of nesting', async (t) => {
    const deep = 500_000

    t.ok(isValid(Buffer.from('['.repeat(deep) + ']'.repeat(deep))))
    t.notOk(isValid(Buffer.from('[{"a":'.repeat(deep))))
  })
})

t.test('JsonObject', async (t) => {
  const read = (text: string): LazyJsonObject | null => LazyJsonObject.at(Buffer.from(text), 0)

  t.test('JsonObject returns the values of JSON.parse', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const text = JSON.stringify(object)
        const found = read(text)
        return Object.entries(JSON.parse(text)).every(
          ([name, value]) =>
            JSON.stringify(found?.value(name)) === JSON.stringify(value) &&
            found?.text(name) === JSON.stringify(value) &&
            found.end === Buffer.byteLength(text)
        )
      })
    )
  })

  t.test('JsonObject returns the source text of a value', async (t) => {
    t.equal(read('{"n" : 1.50e+3 }')?.text('n'), '1.50e+3')
  })

  t.test('JsonObject decodes escaped names', async (t) => {
    t.equal(read('{"d\\u0061ta":true}')?.value('data'), true)
  })

  t.test('JsonObject returns the last value of a duplicated name, and no text', async (t) => {
    const twice = read('{"a":1,"\\u0061":2}')

    t.equal(twice?.value('a'), 2)
    t.equal(twice?.text('a'), null)
    t.equal(twice?.has('a'), true)
  })

  t.test('JsonObject returns nothing for a missing name', async (t) => {
    t.equal(read('{}')?.value('toString'), undefined)
    t.equal(read('{"__proto__":{"a":1}}')?.value('a'), undefined)
  })

  for (const text of ['[]', '1', '{"a":tru}', '{"a":1', '{"a":1]', '{"a" 1}', '{,}']) {
    t.test(`JsonObject rejects ${text}`, async (t) => {
      t.equal(read(text), null)
    })
  }
})
