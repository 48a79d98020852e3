import t from 'tap'
import { cookieValues } from '../../../src/gateway/session/cookies.js'

const CASES: readonly (readonly [title: string, header: string | undefined, values: readonly string[]])[] = [
  ['no header', undefined, []],
  ['an empty header', '', []],
  ['one cookie', 'auth_token=abc', ['abc']],
  ['the first of several', 'auth_token=abc; b=2; c=3', ['abc']],
  ['one between others', 'a=1; auth_token=abc; c=3', ['abc']],
  ['the last of several', 'a=1; b=2; auth_token=abc', ['abc']],
  ['cookies without spaces between them', 'a=1;auth_token=abc;c=3', ['abc']],
  ['a semicolon at the end', 'auth_token=abc;', ['abc']],
  ['semicolons and nothing between them', ';;; ;auth_token=abc;;', ['abc']],

  ['a name that only ends alike', 'xauth_token=evil', []],
  ['a name that only begins alike', 'auth_tokenx=evil', []],
  ['a longer name of which it is the beginning', 'auth_token_expiry=1', []],
  ['a name with a prefix', '__Host-auth_token=evil', []],
  ['a name with another letter case', 'Auth_Token=evil', []],
  ['an encoded name', 'auth%5Ftoken=evil', []],
  ['the name in quotes', '"auth_token"=evil', []],
  ['the name as a value', 'a=auth_token', []],
  ['the name and a value as the value of another', 'a=auth_token=evil', []],
  ['look-alikes around the real one', 'xauth_token=1; auth_token=abc; auth_tokenx=2', ['abc']],

  ['a no-break space before the name', '\u00a0auth_token=evil', []],
  ['a vertical tab before the name', '\u000bauth_token=evil', []],
  ['a no-break space after the name', 'auth_token\u00a0=evil', []],
  ['a no-break space around the value', 'auth_token=\u00a0abc\u00a0', ['\u00a0abc\u00a0']],

  ['the name alone', 'auth_token', []],
  ['the name alone before others', 'auth_token; a=1', []],
  ['the name alone beside the real one', 'auth_token; auth_token=abc', ['abc']],
  ['a value alone', '=abc', []],
  ['no name in front of the pair', '=auth_token=abc', []],
  ['an empty value', 'auth_token=', ['']],
  ['an empty value before others', 'auth_token=; a=1', ['']],
  ['equals signs in the value', 'auth_token=YWI=', ['YWI=']],
  ['equals signs only', 'auth_token===', ['==']],

  ['spaces around the value', 'auth_token=  abc  ; a=1', ['abc']],
  ['a tab before the name', 'a=1;\tauth_token=abc', ['abc']],
  ['a space after the name', 'auth_token =abc', ['abc']],
  ['a space inside the value', 'auth_token=a b', ['a b']],
  ['a space inside the name', 'auth_ token=abc', []],
  ['nothing but a space', 'auth_token= ', ['']],

  ['a value in quotes', 'auth_token="abc"', ['abc']],
  ['an empty value in quotes', 'auth_token=""', ['']],
  ['a quote alone', 'auth_token="', ['"']],
  ['a quote at the beginning only', 'auth_token="abc', ['"abc']],
  ['a quote at the end only', 'auth_token=abc"', ['abc"']],
  ['quotes in quotes', 'auth_token=""abc""', ['"abc"']],
  ['a semicolon in quotes, which still ends the value', 'auth_token="a;b"', ['"a']],
  ['encoding in quotes', 'auth_token="a%2Bb"', ['a+b']],
  ['encoded quotes, which belong to the value', 'auth_token=%22abc%22', ['"abc"']],

  ['a plus sign, which is no space', 'auth_token=a+b', ['a+b']],
  ['an encoded value', 'auth_token=a%2Fb%3D', ['a/b=']],
  ['an encoded value in small letters', 'auth_token=a%2fb', ['a/b']],
  ['a value that was encoded twice', 'auth_token=a%252Fb', ['a%2Fb']],
  ['encoded text of another alphabet', 'auth_token=%E6%97%A5', ['日']],
  ['an encoded semicolon, which ends nothing', 'auth_token=a%3B%20b=c', ['a; b=c']],
  ['encoded spaces, which are not cut off', 'auth_token=%20abc%20', [' abc ']],
  ['an encoding that is cut short', 'auth_token=abc%2', ['abc%2']],
  ['an encoding that is none', 'auth_token=a%zzb', ['a%zzb']],
  ['an encoding that is not UTF-8', 'auth_token=%C3%28', ['%C3%28']],
  ['one bad encoding, which leaves the others alone', 'auth_token=%41%zz', ['%41%zz']],

  ['the same value twice', 'auth_token=abc; auth_token=abc', ['abc']],
  ['the same value in two spellings', 'auth_token=a%2Bb; auth_token="a+b"', ['a+b']],
  ['two values', 'auth_token=abc; auth_token=evil', ['abc', 'evil']],
  ['two values with others between them', 'auth_token=abc; a=1; auth_token=evil', ['abc', 'evil']],
  ['an empty value beside another', 'auth_token=; auth_token=abc', ['', 'abc']],
  ['two values that differ in letter case', 'auth_token=abc; auth_token=ABC', ['abc', 'ABC']],
  ['a second value behind a space after the name', 'auth_token=abc; auth_token =evil', ['abc', 'evil']]
]

t.test('cookieValues', async (t) => {
  for (const [title, header, values] of CASES) {
    t.test(`cookieValues reads ${title}`, async (t) => {
      t.strictSame(cookieValues(header, 'auth_token'), values)
    })
  }

  t.test('cookieValues compares names as text, not as patterns', async (t) => {
    t.strictSame(cookieValues('abc=1', 'a.c'), [])
    t.strictSame(cookieValues('a.c=1; abc=2', 'a.c'), ['1'])
  })

  t.test('cookieValues skips values that count as absent', async (t) => {
    const isAbsent = (value: string): boolean => value === '' || value === 'null'
    const header = 'auth_token=; auth_token=null; auth_token=abc; auth_token=evil'
    t.strictSame(cookieValues(header, 'auth_token', isAbsent), ['abc', 'evil'])
    t.strictSame(cookieValues('auth_token=; auth_token=null', 'auth_token', isAbsent), [])
  })

  t.test('cookieValues trims thousands of spaces', async (t) => {
    const spaces = ' '.repeat(100_000)
    t.strictSame(cookieValues(`${spaces}auth_token${spaces}=${spaces}a${spaces}b${spaces}`, 'auth_token'), [
      `a${spaces}b`
    ])
  })

  t.test('cookieValues finds one cookie among ten thousand', async (t) => {
    const others = Array.from({ length: 5_000 }, (_, index) => `xauth_token${index}=${index}`).join('; ')
    t.strictSame(cookieValues(`${others}; auth_token=abc; ${others}`, 'auth_token'), ['abc'])
  })

  t.test('cookieValues reads a value of a megabyte', async (t) => {
    const value = 'a'.repeat(1024 * 1024)
    t.strictSame(cookieValues(`auth_token="${value}"`, 'auth_token'), [value])
  })

  t.test('cookieValues reads a header that consists of separators', async (t) => {
    t.strictSame(cookieValues(`auth_token${';'.repeat(16_000)}`, 'auth_token'), [])
    t.strictSame(cookieValues(`auth_token${'='.repeat(16_000)}`, 'auth_token'), ['='.repeat(15_999)])
  })

  t.test('cookieValues returns at most two of many values', async (t) => {
    const many = Array.from({ length: 1_000 }, (_, index) => `auth_token=${index}`).join('; ')
    t.strictSame(cookieValues(many, 'auth_token'), ['0', '1'])
  })
})
