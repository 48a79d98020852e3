import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { cookieValue } from '../../src/client/cookie-value.js'
import { checkProperty } from '../helper/property.js'

const CASES: readonly (readonly [cookies: string, expected: string | null, title: string])[] = [
  ['', null, 'no cookie at all'],
  ['a=1', '1', 'the only one'],
  ['b=2; a=1; c=3', '1', 'one among others'],
  ['b=2;a=1', '1', 'no space between'],
  ['xa=1; ax=2', null, 'similar names'],
  ['\u00a0a=1', null, 'a name that begins with a no-break space'],
  ['a=', '', 'an empty value'],
  ['a=1=2', '1=2', 'a value with an equals sign'],
  ['a=%7B%22b%22%3A1%7D', '{"b":1}', 'percent-encoded'],
  ['a=%E0%A4%A', '%E0%A4%A', 'an invalid encoding'],
  ['a=%2541', '%41', 'encoded twice is decoded once'],
  ['a=1; a=2', null, 'two different values'],
  ['a=1; a=1', '1', 'the same value twice'],
  ['a', null, 'a name without a value']
]

t.test('cookieValue', async (t) => {
  for (const [cookies, expected, title] of CASES) {
    t.test(`cookieValue returns ${JSON.stringify(expected)} for ${JSON.stringify(cookies)}: ${title}`, async (t) => {
      t.equal(cookieValue(cookies, 'a'), expected)
    })
  }

  t.test('cookieValue decodes any encoded value next to other cookies', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (value, other) => {
        const cookies = `z=${encodeURIComponent(other)}; a=${encodeURIComponent(value)}`
        assert.equal(cookieValue(cookies, 'a'), value)
      })
    )
  })

  t.test('cookieValue never throws', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.string({ unit: 'binary' }), (cookies) => void cookieValue(cookies, 'a'))
    )
  })
})
