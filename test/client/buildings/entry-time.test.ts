import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { entryTimeMs } from '../../../src/client/buildings/entry-time.js'
import { timeOf } from '../../../src/relay/core/merging/entry-time.js'
import { checkProperty } from '../../helper/property.js'

const NONE: readonly unknown[] = [
  ...[undefined, null, true, {}, [1763200000000]],
  ...['', 'yesterday', '1763200000000', '2025', '2025-11', '2025-11-15T', '15/11/2025', '2025-13-01', 'Nov 15, 2025'],
  ...['2025-11-15T10:00:00 ', '2025-11-15T25:00:00Z', '2025-11-15T10:00:00+1']
]
for (const timestamp of NONE) {
  t.test(`the timestamp ${JSON.stringify(timestamp)} is no time`, async (t) => {
    // Publications may contain values that the types exclude.
    t.ok(Number.isNaN(entryTimeMs({ timestamp: timestamp as never })))
  })
}

t.test('a number is Unix milliseconds', async (t) => {
  t.equal(entryTimeMs({ timestamp: 1763200000000 }), 1763200000000)
})

t.test('a time without an offset is UTC', async (t) => {
  t.equal(entryTimeMs({ timestamp: '2025-11-15 10:00' }), Date.UTC(2025, 10, 15, 10))
})

t.test('the page and the relay read the same time from a text', async (t) => {
  const two = (max: number) => fc.integer({ min: 0, max }).map((number) => String(number).padStart(2, '0'))
  const texts = fc
    .record({
      date: fc.date({ min: new Date('1970-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
      separator: fc.constantFrom('T', 't', ' '),
      seconds: fc.option(two(59)),
      fraction: fc.option(fc.nat(999)),
      offset: fc.oneof(
        fc.constantFrom('', 'Z', 'z'),
        fc
          .tuple(fc.constantFrom('+', '-'), two(14), two(59))
          .map(([sign, hours, minutes]) => `${sign}${hours}:${minutes}`)
      ),
      hasTime: fc.boolean()
    })
    .map(({ date, separator, seconds, fraction, offset, hasTime }) => {
      const iso = date.toISOString()
      const fractionText = fraction === null ? '' : `.${String(fraction).padStart(3, '0')}`
      const secondsText = seconds === null ? '' : `:${seconds}${fractionText}`
      return hasTime ? `${iso.slice(0, 10)}${separator}${iso.slice(11, 16)}${secondsText}${offset}` : iso.slice(0, 10)
    })
  await checkProperty(
    t,
    fc.property(texts, (timestamp) => {
      const json = Buffer.from(JSON.stringify(timestamp))
      assert.ok(Math.abs(entryTimeMs({ timestamp }) - timeOf(json, 0, json.length)) < 1e-3, timestamp)
    }),
    { numRuns: 1000 }
  )
})
