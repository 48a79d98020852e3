import t from 'tap'
import { linearRegExp } from '../../src/shared/linear-regexp.js'

const MATCHES: readonly (readonly [source: string, text: string, isMatch: boolean])[] = [
  ['^(a+)+$', 'aaa', true],
  ['^(a+)+$', 'aab', false],
  ['(?i)^floor-[a-f]$', 'FLOOR-B', true],
  ['^(?P<building>\\w+)-(?<floor>\\d+)$', 'hq-12', true],
  ['^\\p{L}+$', 'größe', true],
  ['^.$', '😀', true],
  ['^[[:alpha:]]+$', 'abc', true]
]

for (const [source, text, isMatch] of MATCHES)
  t.test(`${source} ${isMatch ? 'matches' : 'does not match'} ${text}`, async (t) => {
    t.equal(linearRegExp(source).test(text), isMatch)
  })

// With the engine of V8, each of these takes longer than any test may.
for (const source of ['^(a+)+$', '^\\w+\\s?\\w*\\s?\\w*\\s?\\w*\\s?\\w*\\s?\\w*$', '^.*,.*,.*,.*,.*;$', '^(a|aa)+$'])
  t.test(`${source} ends on 100,000 characters that almost match`, async (t) => {
    t.notOk(linearRegExp(source).test(`${'a'.repeat(50_000)}${','.repeat(50_000)}!`))
  })

for (const source of ['(', '(?=a)', '(?<!a)b', '(a)\\1', '(a{1,100}){1,100}', '\\'])
  t.test(`${source} is a syntax error`, async (t) => {
    t.throws(() => linearRegExp(source), SyntaxError)
  })
