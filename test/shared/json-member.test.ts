import t from 'tap'
import { withoutMember } from '../../src/shared/json-member.js'

const CASES: readonly (readonly [json: string, path: string, rest: string])[] = [
  ['{"a":1}', 'a', '{}'],
  ['{"a":1,"b":2}', 'a', '{"b":2}'],
  ['{"b":2,"a":1}', 'a', '{"b":2}'],
  [' { "b" : [1, {"a":1}] , "a":{"a":[",}"]} }\n', 'a', ' { "b" : [1, {"a":1}] }\n'],
  ['{"a":1,"a":"x","b":1e400,"a":[]}', 'a', '{"b":1e400}'],
  ['{"\\u0061":"}","b":"\\\\\\"a"}', 'a', '{"b":"\\\\\\"a"}'],
  ['{"x":{"a":1,"b":12345678901234567890} , "a":1}', 'x.a', '{"x":{"b":12345678901234567890} , "a":1}'],
  ['{"x":{"a":1},"x":{"a":2}}', 'x.a', '{"x":{},"x":{}}'],
  ['{"x":{ }}', 'x.a', '{"x":{ }}'],
  ['{"x":[{"a":1}]}', 'x.a', '{"x":[{"a":1}]}'],
  ['[{"a":1}]', 'a', '[{"a":1}]'],
  ['{}', 'a', '{}'],
  ['"a"', 'a', '"a"'],
  [
    `{"a":1,"b":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    'a',
    `{"b":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  ]
]

t.test('a member is removed and no other byte changes', async (t) => {
  for (const [json, path, rest] of CASES) t.equal(withoutMember(json, path.split('.')), rest, json.slice(0, 80))
})
