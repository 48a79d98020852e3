import fc from 'fast-check'
import t from 'tap'
import { conflator } from '../../../src/relay/core/conflation.js'
import { checkProperty } from '../../helper/property.js'

/** Null if one of the publications cannot be merged. */
const mergeBy =
  (path: string) =>
  (...publications: readonly string[]): string | null => {
    const conflation = conflator(path).start()
    return publications.every((json) => conflation.add(json)) ? conflation.toJson() : null
  }

const BAD_PATHS = ['', 'data', 'data[]', '[]', 'data[].', '.id', 'data[0].id', 'data[][].id', 'a[].b[].c', 'data[] .id']

t.test('a conflate path', async (t) => {
  for (const path of BAD_PATHS) {
    t.test(`the conflate path ${JSON.stringify(path)} is rejected`, async (t) => {
      t.throws(() => conflator(path), TypeError)
    })
  }

  const GOOD: readonly (readonly [path: string, older: unknown, newer: unknown, merged: unknown])[] = [
    [
      '[].id',
      [{ id: 1, v: 1 }],
      [{ id: 2, v: 2 }],
      [
        { id: 1, v: 1 },
        { id: 2, v: 2 }
      ]
    ],
    [
      'a.b[].c.d',
      { a: { b: [{ c: { d: 1 } }] } },
      { a: { b: [{ c: { d: 2 } }] } },
      { a: { b: [{ c: { d: 1 } }, { c: { d: 2 } }] } }
    ],
    ['data[].$key-2', { data: [{ '$key-2': 1 }] }, { data: [{ '$key-2': 1 }] }, { data: [{ '$key-2': 1 }] }]
  ]
  for (const [path, older, newer, merged] of GOOD) {
    t.test(`the conflate path ${path} finds the entries`, async (t) => {
      t.equal(mergeBy(path)(JSON.stringify(older), JSON.stringify(newer)), JSON.stringify(merged))
    })
  }
})

const merge = mergeBy('data[].id')

const MERGES: readonly (readonly [older: string, newer: string, merged: string, why: string])[] = [
  [
    '{"data":[{"id":"a","x":1},{"id":"b","x":1}]}',
    '{"data":[{"id":"a","x":2},{"id":"c","x":2}]}',
    '{"data":[{"id":"b","x":1},{"id":"a","x":2},{"id":"c","x":2}]}',
    'the newest entry of a key wins, and the newest batch comes last in its own order'
  ],
  [
    '{"type":"old","data":[{"id":1}],"time":1,"gone":true}',
    '{"type":"new","data":[{"id":2}],"time":2}',
    '{"type":"new","data":[{"id":1},{"id":2}],"time":2}',
    'everything else is of the newer one'
  ],
  ['{"data":[]}', '{"data":[{"id":1}]}', '{"data":[{"id":1}]}', 'an empty older list adds nothing'],
  ['{"data":[{"id":1}]}', '{"data":[]}', '{"data":[{"id":1}]}', 'an empty newer list takes nothing away'],
  ['{"data":[]}', '{"data":[ ]}', '{"data":[]}', 'two empty lists are one'],
  [
    '{"data":[{"id":1,"x":1},{"id":1,"x":2}]}',
    '{"data":[{"id":2}]}',
    '{"data":[{"id":1,"x":2},{"id":2}]}',
    'the last of a key in one publication is its newest'
  ],
  ['{"data":[{"id":"7"}]}', '{"data":[{"id":7}]}', '{"data":[{"id":"7"},{"id":7}]}', 'a text is not a number'],
  [
    '{"data":[{"id":"a\\u0062c"}]}',
    '{"data":[{"id":"abc","x":1}]}',
    '{"data":[{"id":"abc","x":1}]}',
    'two spellings of a text are one key'
  ],
  ['{"data":[{"id":1e2}]}', '{"data":[{"id":100}]}', '{"data":[{"id":100}]}', 'two spellings of a number are one key'],
  [
    '{"data":[{"id":90071992547409931}]}',
    '{"data":[{"id":90071992547409932}]}',
    '{"data":[{"id":90071992547409931},{"id":90071992547409932}]}',
    'numbers that JavaScript confuses are two keys'
  ],
  [
    '{"data":[{"id":1,"big":12345678901234567890,"exact":1.10,"e":1e400}]}',
    '{"data":[{"id":2}]}',
    '{"data":[{"id":1,"big":12345678901234567890,"exact":1.10,"e":1e400},{"id":2}]}',
    'numbers keep their spelling'
  ],
  [
    '{"data":[{"id":"a","s":"]}\\\\\\"[{"}]}',
    '{"data":[{"id":"b","s":"\\\\"}]}',
    '{"data":[{"id":"a","s":"]}\\\\\\"[{"},{"id":"b","s":"\\\\"}]}',
    'brackets and quotes within strings are none'
  ],
  [
    ' { "a" : [1, {"data":[]}] , "data" : [ { "id" : 1 } , {"id":2} ] , "z" : null } ',
    '{"data":[ {"id":2,"x":{"id":9}} ], "x":[[],{}]}',
    '{"data":[{ "id" : 1 },{"id":2,"x":{"id":9}}], "x":[[],{}]}',
    'blanks are no matter'
  ],
  [
    '{"d\\u0061ta":[{"id":1}]}',
    '{"data":[{"i\\u0064":2}]}',
    '{"data":[{"id":1},{"i\\u0064":2}]}',
    'names may be spelled otherwise'
  ],
  [
    '{"data":[{"id":"__proto__","x":1}]}',
    '{"data":[{"id":"__proto__","x":2},{"id":"constructor"}]}',
    '{"data":[{"id":"__proto__","x":2},{"id":"constructor"}]}',
    'no key is special'
  ],
  ['{"data":[{"id":"","x":1}]}', '{"data":[{"id":"","x":2}]}', '{"data":[{"id":"","x":2}]}', 'an empty text is a key']
]

t.test('two publications are merged', async (t) => {
  for (const [older, newer, merged, why] of MERGES) {
    t.test(why, async (t) => {
      t.equal(merge(older, newer), merged)
    })
  }
})

const NO_SHAPE = [
  'null',
  'true',
  '7',
  '"data"',
  '[]',
  '{}',
  '{"other":[{"id":1}]}',
  '{"data":null}',
  '{"data":{}}',
  '{"data":{"id":1}}',
  '{"data":"x"}',
  '{"data":[1]}',
  '{"data":[[]]}',
  '{"data":[null]}',
  '{"data":[{}]}',
  '{"data":[{"id":null}]}',
  '{"data":[{"id":true}]}',
  '{"data":[{"id":{}}]}',
  '{"data":[{"id":[1]}]}',
  '{"data":[{"id":1},{"ID":2}]}',
  '{"data":[{"id":1},7]}',
  '{"data":[{"id":1,"id":2}]}',
  '{"data":[{"id":1}],"data":[{"id":2}]}',
  '{"nested":{"data":[{"id":1}]}}'
]

t.test('a publication without the shape is never merged', async (t) => {
  const good = '{"data":[{"id":1}]}'
  for (const json of NO_SHAPE) {
    t.test(json, async (t) => {
      t.equal(merge(json, good), null, 'as the older one')
      t.equal(merge(good, json), null, 'as the newer one')
    })
  }

  t.test('a publication that cannot be merged leaves the merged ones unchanged', async (t) => {
    const conflation = conflator('data[].id').start()

    t.equal(conflation.add(good), true)
    t.equal(conflation.add('{"data":[{"id":2},{}]}'), false)
    t.equal(conflation.toJson(), good)
  })
})

interface Entry {
  id: string | number
  [name: string]: unknown
}
interface Batch {
  data: Entry[]
  [name: string]: unknown
}

/** Merges by parsing, as the expected result. */
const mergedByParsing = (batches: readonly Batch[]): Batch => {
  const entries = new Map<string | number, Entry>()
  for (const { data } of batches) {
    for (const entry of data) {
      entries.delete(entry.id)
      entries.set(entry.id, entry)
    }
  }
  return { ...(batches.at(-1) as Batch), data: [...entries.values()] }
}

const entry: fc.Arbitrary<Entry> = fc.record(
  {
    id: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constantFrom('a', 'b', '"', '\\', 'é', '😀', '')),
    x: fc.jsonValue({ maxDepth: 2 }),
    '"': fc.string({ unit: 'grapheme' })
  },
  { requiredKeys: ['id'] }
)
const batch: fc.Arbitrary<Batch> = fc.record(
  { before: fc.jsonValue({ maxDepth: 2 }), data: fc.array(entry, { maxLength: 6 }), 'be"hind': fc.jsonValue() },
  { requiredKeys: ['data'] }
)
const batches = fc.array(batch, { minLength: 1, maxLength: 8 })
const written = fc
  .tuple(batches, fc.constantFrom(undefined, 1, '\t'))
  .map(([list, indent]) => [list, list.map((one) => JSON.stringify(one, null, indent))] as const)

t.test('any publications', async (t) => {
  t.test('merged publications equal the result of parsing and merging, and have the announced size', async (t) => {
    await checkProperty(
      t,
      fc.property(written, ([list, texts]) => {
        const conflation = conflator('data[].id').start()
        for (const text of texts) if (!conflation.add(text)) return false
        const json = conflation.toJson()
        if (conflation.bytes !== Buffer.byteLength(json)) return false
        return JSON.stringify(JSON.parse(json)) === JSON.stringify(mergedByParsing(list))
      }),
      { numRuns: 1000 }
    )
  })

  t.test('merging is associative', async (t) => {
    await checkProperty(
      t,
      fc.property(written, ([, texts]) => {
        const [first = '', ...rest] = texts
        const merged = rest.reduce((older, newer) => merge(older, newer) ?? 'null', first)
        return rest.length === 0 || merged === merge(...texts)
      }),
      { numRuns: 500 }
    )
  })
})

t.test('merging arbitrary JSON never throws', async (t) => {
  await checkProperty(
    t,
    fc.property(fc.json(), fc.json(), (older, newer) => {
      const merged = merge(older, newer)
      return merged === null || JSON.parse(merged) !== undefined
    }),
    { numRuns: 1000 }
  )
})

t.test('600 large batches are merged to the newest entry of every key', async (t) => {
  const KEYS = 500
  const conflation = conflator('data[].id').start()
  const newest = new Map<string, number>()
  for (let round = 0; round < 600; round++) {
    const data = Array.from({ length: 20 }, (_, index) => ({
      id: `tx-${(round * 13 + index * 7) % KEYS}`,
      round,
      note: 'x'.repeat(100)
    }))
    for (const { id } of data) newest.set(id, round)
    conflation.add(JSON.stringify({ type: 'position-batch', data }))
  }

  const merged: Batch = JSON.parse(conflation.toJson())
  t.same(new Map(merged.data.map(({ id, round }) => [id, round])), newest)
  t.equal(merged.data.length, KEYS)
})
