import fc from 'fast-check'
import t from 'tap'
import { duplicateNames } from '../../src/openapi/duplicate-names.js'
import { checkProperty } from '../helper/property.js'

t.test('every member whose name occurs twice in its object is found with its path', async (t) => {
  for (const [json, expected] of [
    ['{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}', []],
    ['{"a":1,"a":2,"a":3}', [['a'], ['a']]],
    ['{"a":[0,"x,y",{"b":{},"b":[]}]}', [['a', 2, 'b']]],
    ['{"a\\"b":1,"a\\u0022b":2}', [['a"b']]],
    ['{"a":"{\\"x\\":1,\\"x\\":2}","b":["\\\\","{"]}', []],
    ['{"":{"":1,"":2}}', [['', '']]],
    ['{"__proto__":1,"constructor":2,"__proto__":3}', [['__proto__']]],
    ['"a"', []],
    ['[]', []]
  ] as const)
    t.same(duplicateNames(json), expected, json)
})

t.test('JSON that was made from a value has no duplicate names', async (t) => {
  await checkProperty(
    t,
    fc.property(fc.jsonValue(), (value) => duplicateNames(JSON.stringify(value)).length === 0)
  )
})

t.test('duplicate names are found in deeply nested and large texts', async (t) => {
  const depth = 200_000
  t.same(duplicateNames(`${'['.repeat(depth)}${']'.repeat(depth)}`), [])
  t.equal(duplicateNames(`${'{"a":['.repeat(1000)}{"b":1,"b":2}${']}'.repeat(1000)}`)[0]?.length, 2001)
})
