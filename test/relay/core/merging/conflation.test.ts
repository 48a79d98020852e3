import fc from 'fast-check'
import t from 'tap'
import { Conflation } from '../../../../src/relay/core/merging/conflation.js'
import { timeOf } from '../../../../src/relay/core/merging/entry-time.js'
import { conflator, newestTime } from '../../../../src/relay/core/merging/keyed-list.js'
import { checkProperty } from '../../../helper/property.js'
import { required } from '../../../helper/required.js'

/** Null if one of the publications cannot be merged. */
const mergeBy =
  (path: string, entryTime: string | null = null) =>
  (...publications: readonly string[]): string | null => {
    const { read } = conflator(path, entryTime)
    const conflation = new Conflation()
    for (const json of publications) {
      const list = read(json)
      if (list === null) return null
      conflation.add(list)
    }
    return conflation.toJson()
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

const MERGES: readonly (readonly [older: string, newer: string, merged: string, title: string])[] = [
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
    'all other fields are those of the newer one'
  ],
  ['{"data":[]}', '{"data":[{"id":1}]}', '{"data":[{"id":1}]}', 'an empty older list adds nothing'],
  ['{"data":[{"id":1}]}', '{"data":[]}', '{"data":[{"id":1}]}', 'an empty newer list takes nothing away'],
  ['{"data":[]}', '{"data":[ ]}', '{"data":[]}', 'two empty lists are merged to an empty list'],
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
    'numbers that are equal as doubles are two keys'
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
    'brackets and quotes within strings have no meaning'
  ],
  [
    ' { "a" : [1, {"data":[]}] , "data" : [ { "id" : 1 } , {"id":2} ] , "z" : null } ',
    '{"data":[ {"id":2,"x":{"id":9}} ], "x":[[],{}]}',
    '{"data":[{ "id" : 1 },{"id":2,"x":{"id":9}}], "x":[[],{}]}',
    'whitespace between tokens is ignored'
  ],
  [
    '{"d\\u0061ta":[{"id":1}]}',
    '{"data":[{"i\\u0064":2}]}',
    '{"data":[{"id":1},{"i\\u0064":2}]}',
    'field names may contain escapes'
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
  for (const [older, newer, merged, title] of MERGES) {
    t.test(`two publications are merged: ${title}`, async (t) => {
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
  const valid = '{"data":[{"id":1}]}'
  for (const json of NO_SHAPE) {
    t.test(`the publication ${json} is never merged`, async (t) => {
      t.equal(merge(json, valid), null, 'as the older one')
      t.equal(merge(valid, json), null, 'as the newer one')
    })
  }
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
  return { ...required(batches.at(-1)), data: [...entries.values()] }
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
        const { read } = conflator('data[].id')
        const conflation = new Conflation()
        for (const text of texts) {
          const found = read(text)
          if (found === null) return false
          conflation.add(found)
        }
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
  const { read } = conflator('data[].id')
  const conflation = new Conflation()
  const newest = new Map<string, number>()
  for (let round = 0; round < 600; round++) {
    const data = Array.from({ length: 20 }, (_, index) => ({
      id: `tx-${(round * 13 + index * 7) % KEYS}`,
      round,
      note: 'x'.repeat(100)
    }))
    for (const { id } of data) newest.set(id, round)
    const list = read(JSON.stringify({ type: 'position-batch', data }))
    if (list !== null) conflation.add(list)
  }

  const merged: Batch = JSON.parse(conflation.toJson())
  t.same(new Map(merged.data.map(({ id, round }) => [id, round])), newest)
  t.equal(merged.data.length, KEYS)
})

const mergeByTime = mergeBy('data[].id', 'at')
const entryAt = (at: unknown, n: number): string => JSON.stringify({ data: [{ id: 1, at, n }] })
/** The `n` of the entry that wins. */
const winner = (...publications: readonly string[]): number | undefined =>
  JSON.parse(mergeByTime(...publications) ?? '{}').data?.[0]?.n

/** Each row: time of the earlier and of the later publication, which of them wins, and why. */
const TIMES: readonly (readonly [earlier: unknown, later: unknown, wins: 1 | 2, title: string])[] = [
  [1000, 999, 1, 'an entry does not replace a newer one'],
  [1000, 1001, 2, 'a newer entry replaces an older one'],
  [1000, 1000, 2, 'of two equal times the later publication wins'],
  [1000, undefined, 2, 'without a time the later publication wins'],
  [undefined, 1000, 2, 'an entry with a time replaces one without'],
  [1000, null, 2, 'null is no time'],
  [1000, 'yesterday', 2, 'a text that is not ISO 8601 is no time'],
  [1000, '', 2, 'an empty text is no time'],
  [1000, '999', 2, 'a number in a text is no time'],
  ['2026-11-16T08:00:00Z', '2026-11-16X07:00:00Z', 2, 'a text with another letter before the hour is no time'],
  [1000, { at: 1 }, 2, 'an object is no time'],
  [1000, true, 2, 'a boolean is no time'],
  ['2026-11-16T08:00:00Z', '2026-11-16T07:59:59.999Z', 1, 'ISO 8601 texts are compared as times'],
  ['2026-11-16T08:00:00+02:00', '2026-11-16T07:00:00Z', 2, 'offsets of time zones count'],
  ['2026-11-16T08:00:00-02:00', '2026-11-16T09:59:59Z', 1, 'negative offsets count'],
  ['2026-11-16T08:00:00.000200Z', '2026-11-16T08:00:00.000100Z', 1, 'microseconds count'],
  ['2026-11-16T08:00:00Z', '20261116T075959Z', 1, 'the basic format is compared with the extended one'],
  ['2026-11-16T08:00:00', '2026-11-16T07:59:59Z', 1, 'a time without an offset is UTC'],
  ['1970-01-01T00:00:01Z', 999, 1, 'a number is compared with a text as Unix milliseconds'],
  [1001, '1970-01-01T00:00:01Z', 1, 'a text is compared with a number as Unix milliseconds'],
  [-1, -2, 1, 'times before 1970 are compared'],
  [1e3, 999.9, 1, 'fractions of milliseconds are compared']
]

for (const [earlier, later, wins, title] of TIMES) {
  t.test(`with entry_time ${title}`, async (t) => {
    t.equal(winner(entryAt(earlier, 1), entryAt(later, 2)), wins)
    const both = JSON.stringify({
      data: [
        { id: 1, at: earlier, n: 1 },
        { id: 1, at: later, n: 2 }
      ]
    })
    t.equal(winner(both), wins, 'also within one publication')
  })
}

t.test('with entry_time a number that JavaScript cannot represent is no time', async (t) => {
  t.equal(winner(entryAt(5, 1), '{"data":[{"id":1,"at":1e999,"n":2}]}'), 2)
  t.equal(winner('{"data":[{"id":1,"at":1e999,"n":1}]}', entryAt(5, 2)), 2)
})

t.test('a publication that is not valid JSON is not merged', async (t) => {
  t.equal(conflator('[].id', 'at').read('[{"id":1,"at":"\\x"}]'), null)
  t.equal(conflator('[].id').read('[{"id":1} {"id":2}]'), null)
})

t.test('a publication that repeats an object on the path to its list is not merged', async (t) => {
  const { read } = conflator('a.data[].id')
  t.equal(read('{"a":{},"a":{"data":[{"id":1}]}}'), null)
  t.equal(read('{"a":{"data":[{"id":1}]},"a":{}}'), null)
})

t.test('with entry_time a time may contain escaped characters', async (t) => {
  t.equal(winner(entryAt('2026-11-16T08:00:00Z', 1), '{"data":[{"id":1,"at":"2026-11-16T07:00:00\\u005a","n":2}]}'), 1)
})

t.test('with entry_time a repeated member is no time', async (t) => {
  t.equal(winner(entryAt(5, 1), '{"data":[{"id":1,"at":1,"at":1,"n":2}]}'), 2)
})

t.test('the newest time of a publication may be before 1970', async (t) => {
  const newest = (text: string) => newestTime(conflator('[].id', 'at').read(text))

  t.equal(newest('[{"id":1,"at":-7},{"id":2,"at":-5},{"id":3},{"id":4,"at":-6}]'), -5)
  t.equal(newest('[{"id":1}]'), null)
})

t.test('entry_time can be a path, also through the object of the key', async (t) => {
  const merged = mergeBy('data[].meta.id', 'meta.at')
  const [newer, older] = ['{"data":[{"meta":{"id":1,"at":2}}]}', '{"data":[{"meta":{"id":1,"at":1}}]}']

  t.equal(merged(newer, older), newer)
})

t.test('a late entry keeps the envelope of the later publication', async (t) => {
  t.equal(
    mergeByTime('{"n":1,"data":[{"id":1,"at":2},{"id":2,"at":1}]}', '{"n":2,"data":[{"id":1,"at":1},{"id":2,"at":2}]}'),
    '{"n":2,"data":[{"id":1,"at":2},{"id":2,"at":2}]}'
  )
})

for (const path of ['', '.', 'a.', 'a[]', 'a b', '[0]']) {
  t.test(`the entry_time path ${JSON.stringify(path)} is rejected`, async (t) => {
    t.throws(() => conflator('data[].id', path), TypeError)
  })
}

const isoTime = (text: string): number => {
  const json = Buffer.from(JSON.stringify(text))
  return timeOf(json, 0, json.length)
}

t.test('a text that Date.toISOString returns is the time of the date', async (t) => {
  await checkProperty(
    t,
    fc.property(fc.date({ noInvalidDate: true }), (date) => isoTime(date.toISOString()) === date.getTime()),
    { numRuns: 1000 }
  )
})

const NO_ISO = [
  '2026-13-01T00:00:00Z',
  '2026-02-29T00:00:00Z',
  '2200-02-29T00:00:00Z',
  '2026-00-10',
  '2026-11-31',
  '2026-11-16T25:00:00Z',
  '2026-11-16T24:00:01Z',
  '2026-11-16T23:60:00Z',
  '2026-11-16T23:00:61Z',
  '2026-11-16T23:00:00+24:00',
  '2026-11-16T23:00:00 Z',
  '2026-11-16T23:00:00.Z',
  '16.11.2026',
  '2026-11',
  'Mon, 16 Nov 2026 08:00:00 GMT'
]
for (const text of NO_ISO) {
  t.test(`${text} is not an ISO 8601 time`, async (t) => {
    t.ok(Number.isNaN(isoTime(text)))
  })
}

t.test('ISO 8601 allows a date alone, hours alone, a comma, the end of the day and a leap second', async (t) => {
  const midnight = Date.UTC(2026, 10, 17)
  for (const text of [
    '2026-11-17',
    '20261117',
    '2026-11-17T00',
    '2026-11-17T00:00:00,0Z',
    '2026-11-16T24:00:00Z',
    '2026-11-16T23:59:60Z'
  ])
    t.equal(isoTime(text), midnight, text)
  t.equal(isoTime('2028-02-29T00:00:00+0530'), Date.UTC(2028, 1, 28, 18, 30))
})

const timedEntry: fc.Arbitrary<Entry> = fc.record(
  {
    id: fc.integer({ min: 0, max: 3 }),
    at: fc.oneof(
      fc.integer({ min: 0, max: 5 }),
      fc.integer({ min: 0, max: 5 }).map((ms) => new Date(ms).toISOString()),
      fc.constant('never')
    ),
    n: fc.integer()
  },
  { requiredKeys: ['id', 'n'] }
)
const timedBatches = fc.array(
  fc.array(timedEntry, { maxLength: 5 }).map((data) => ({ data })),
  { minLength: 1, maxLength: 8 }
)

const millisecondsOf = (at: unknown): number =>
  typeof at === 'number' ? at : typeof at === 'string' ? Date.parse(at) : Number.NaN

t.test('any publications with entry times are merged as the rule for two entries says', async (t) => {
  await checkProperty(
    t,
    fc.property(timedBatches, (list) => {
      const newest = new Map<unknown, Entry>()
      for (const entry of list.flatMap(({ data }) => data)) {
        const known = newest.get(entry.id)
        if (known !== undefined && millisecondsOf(entry.at) < millisecondsOf(known.at)) continue
        newest.delete(entry.id)
        newest.set(entry.id, entry)
      }
      const merged = mergeByTime(...list.map((one) => JSON.stringify(one)))
      return merged === JSON.stringify({ data: [...newest.values()] })
    }),
    { numRuns: 1000 }
  )
})
