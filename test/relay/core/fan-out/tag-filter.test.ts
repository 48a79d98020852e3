import t from 'tap'
import { parseTagFilter } from '../../../../src/relay/core/fan-out/tag-filter.js'

const MATCHES: readonly (readonly [filter: object, tags: Record<string, string>, expected: boolean])[] = [
  [{ key: 'a', cmp: 'eq', val: '1' }, { a: '1' }, true],
  [{ key: 'a', cmp: 'eq', val: '1' }, { a: '2' }, false],
  [{ key: 'a', cmp: 'neq', val: '1' }, { a: '2' }, true],
  [{ key: 'a', cmp: 'neq', val: '1' }, { a: '1' }, false],
  [{ key: 'a', cmp: 'neq', val: '1' }, {}, true],
  [{ key: 'a', cmp: 'in', vals: ['1', '2'] }, { a: '2' }, true],
  [{ key: 'a', cmp: 'in', vals: ['1', '2'] }, { a: '3' }, false],
  [{ key: 'a', cmp: 'in', vals: ['1', '2'] }, {}, false],
  [{ key: 'a', cmp: 'nin', vals: ['1'] }, { a: '1' }, false],
  [{ key: 'a', cmp: 'nin', vals: ['1'] }, {}, true],
  [{ key: 'a', cmp: 'ex' }, { a: '' }, true],
  [{ key: 'a', cmp: 'ex' }, {}, false],
  [{ key: 'a', cmp: 'nex' }, {}, true],
  [{ key: 'a', cmp: 'nex' }, { a: '1' }, false],
  [{ key: 'a', cmp: 'sw', val: 'ab' }, { a: 'abc' }, true],
  [{ key: 'a', cmp: 'sw', val: 'bc' }, { a: 'abc' }, false],
  [{ key: 'a', cmp: 'ew', val: 'bc' }, { a: 'abc' }, true],
  [{ key: 'a', cmp: 'ct', val: 'b' }, { a: 'abc' }, true],
  [{ key: 'a', cmp: 'ct', val: 'b' }, {}, false],
  [{ key: 'a', cmp: 'gt', val: '9' }, { a: '10' }, true],
  [{ key: 'a', cmp: 'gt', val: '9' }, { a: '9.0' }, false],
  [{ key: 'a', cmp: 'gte', val: '9' }, { a: '9.0' }, true],
  [{ key: 'a', cmp: 'lt', val: '-1.5' }, { a: '-2' }, true],
  [{ key: 'a', cmp: 'lte', val: '1e2' }, { a: '100' }, true],
  [{ key: 'a', cmp: 'lt', val: '9' }, { a: 'x' }, false],
  [{ key: 'a', cmp: 'lt', val: '9' }, { a: '' }, false],
  [{ key: 'a', cmp: 'lt', val: '9' }, {}, false],
  [{ key: 'a', cmp: 'gt', val: 'x' }, { a: '10' }, false],
  [{ key: 'a', cmp: 'lte', val: 'x' }, { a: 'x' }, false],
  [{ op: 'not', nodes: [{ key: 'a', cmp: 'gt', val: 'x' }] }, { a: '10' }, true],
  [{ key: 'toString', cmp: 'ex' }, {}, false],
  [{ key: '__proto__', cmp: 'ex' }, {}, false],
  [
    {
      op: 'and',
      nodes: [
        { key: 'a', cmp: 'ex' },
        { key: 'b', cmp: 'ex' }
      ]
    },
    { a: '1' },
    false
  ],
  [
    {
      op: 'and',
      nodes: [
        { key: 'a', cmp: 'ex' },
        { key: 'b', cmp: 'ex' }
      ]
    },
    { a: '1', b: '2' },
    true
  ],
  [
    {
      op: 'or',
      nodes: [
        { key: 'a', cmp: 'ex' },
        { key: 'b', cmp: 'ex' }
      ]
    },
    { b: '2' },
    true
  ],
  [
    {
      op: 'or',
      nodes: [
        { key: 'a', cmp: 'ex' },
        { key: 'b', cmp: 'ex' }
      ]
    },
    {},
    false
  ],
  [{ op: 'not', nodes: [{ key: 'a', cmp: 'ex' }] }, {}, true],
  // A protobuf client sends empty fields too.
  [{ op: '', key: 'a', cmp: 'eq', val: '1', vals: [], nodes: [] }, { a: '1' }, true]
]

for (const [filter, tags, expected] of MATCHES) {
  t.test(`${JSON.stringify(filter)} ${expected ? 'matches' : 'does not match'} ${JSON.stringify(tags)}`, async (t) => {
    t.equal(parseTagFilter(filter)?.matches(tags), expected)
  })
}

const leaf = { key: 'a', cmp: 'ex' }
const nested = (depth: number): object => (depth === 0 ? leaf : { op: 'not', nodes: [nested(depth - 1)] })

for (const [title, filter] of [
  ['no object', 'a'],
  ['a list', [leaf]],
  ['an unknown operation', { op: 'xor', nodes: [leaf, leaf] }],
  ['an operation without nodes', { op: 'and', nodes: [] }],
  ['nodes that are no list', { op: 'and', nodes: leaf }],
  ['an invalid node', { op: 'or', nodes: [leaf, { key: 'a' }] }],
  ['two nodes under not', { op: 'not', nodes: [leaf, leaf] }],
  ['an unknown comparison', { key: 'a', cmp: 'matches', val: '.*' }],
  ['a comparison of the prototype', { key: 'a', cmp: 'constructor', val: '1' }],
  ['an empty key', { key: '', cmp: 'ex' }],
  ['no key', { cmp: 'ex' }],
  ['a value that is no text', { key: 'a', cmp: 'eq', val: 1 }],
  ['values that are no texts', { key: 'a', cmp: 'in', vals: [1] }],
  ['no values', { key: 'a', cmp: 'in' }],
  ['a value beside its list', { key: 'a', cmp: 'nin', val: '1', vals: ['1'] }],
  ['a list beside its value', { key: 'a', cmp: 'eq', val: '1', vals: ['1'] }],
  ['a value for the existence of a tag', { key: 'a', cmp: 'ex', val: '1' }],
  ['a list for the absence of a tag', { key: 'a', cmp: 'nex', vals: ['1'] }],
  ...['eq', 'neq', 'sw', 'ew', 'ct', 'gt', 'gte', 'lt', 'lte'].flatMap((cmp) => [
    [`no value for ${cmp}`, { key: 'a', cmp }],
    [`an empty value for ${cmp}`, { key: 'a', cmp, val: '' }]
  ]),
  ['more than 100 nodes', { op: 'or', nodes: Array(100).fill(leaf) }],
  ['more than 100 levels', nested(100)],
  ['more than 1000 values', { key: 'a', cmp: 'in', vals: Array(1001).fill('x') }]
] as const) {
  t.test(`a tag filter with ${title} is invalid`, async (t) => {
    t.equal(parseTagFilter(filter), null)
  })
}

for (const [title, filter] of [
  ['100 nodes', { op: 'or', nodes: Array(99).fill(leaf) }],
  ['100 levels', nested(99)],
  ['1000 values', { key: 'a', cmp: 'in', vals: Array(1000).fill('x') }]
] as const) {
  t.test(`a tag filter with ${title} is valid`, async (t) => {
    t.type(parseTagFilter(filter)?.text, 'string')
  })
}

t.test('equal tag filters have equal texts, however they are spelt', async (t) => {
  const text = parseTagFilter({ key: 'a', cmp: 'eq', val: '1' })?.text
  t.equal(parseTagFilter({ val: '1', nodes: [], cmp: 'eq', key: 'a' })?.text, text)
  t.not(parseTagFilter({ key: 'a', cmp: 'eq', val: '2' })?.text, text)
})
