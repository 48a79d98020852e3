import fc from 'fast-check'
import t from 'tap'
import { linearRegExpOfJavaScript } from '../../src/shared/linear-regexp.js'
import { checkProperty } from '../helper/property.js'

/** Characters that the classes of JavaScript, RE2 and the flags treat differently. */
const CHARACTERS = [
  ...['a', 'b', 'B', 'z', '0', '9', '_', '-', '.', '/', '\\', ']', '{', '}', '^', '$', '(', '|', 'k', 'K', 's', 'ſ'],
  ...['\0', '\b', '\t', '\n', '\v', '\f', '\r', ' ', '\u0085', '\u00a0', '\u1680', '\u180e', '\u200b', '\u2028'],
  ...['\u2029', '\u202f', '\u3000', '\ufeff', 'ä', 'Ä', 'ß', 'λ', '中', '٣', '😀', '\u{1d7d8}', '\ud83d', '\ude00']
]
const TEXT = fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 6 }).map((parts) => parts.join(''))

const ESCAPES = [
  ...['\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '\\t', '\\n', '\\v', '\\f', '\\r', '\\0', '\\cJ', '\\ca', '\\x61'],
  ...['\\u0061', '\\u{1f600}', '\\ud83d\\ude00', '\\ud83d', '\\p{L}', '\\P{L}', '\\p{Lu}', '\\p{Script=Greek}'],
  ...['\\p{sc=Latn}', '\\p{Script_Extensions=Han}', '\\p{Nd}', '\\p{White_Space}', '\\p{Any}', '\\P{ASCII}', '\\/'],
  ...['\\.', '\\\\', '\\]', '\\[', '\\^', '\\$', '\\|', '\\{', '\\}', '\\(']
]
const MEMBER = fc.oneof(
  fc.constantFrom(...ESCAPES, '\\b', '\\-', 'a', '.', '$', '(', '|', '*', '{'),
  fc.constantFrom('a-z', '0-9', '\\x20-\\x7e', '!-~', '\\0-\\ud7ff', '\\ud800\\udc00-\\udbff\\udfff', '--a')
)
const CLASS = fc
  .tuple(fc.constantFrom('', '^'), fc.array(MEMBER, { maxLength: 3 }), fc.constantFrom('', '-'))
  .map(([sign, members, end]) => `[${sign}${members.join('')}${end}]`)
const QUANTIFIER = fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{0,2}', '{1,}', '*?', '+?', '{2,3}?', '{0}')

const { pattern: PATTERN } = fc.letrec<{ pattern: string; term: string; group: string }>((tie) => ({
  pattern: fc
    .array(fc.array(tie('term'), { maxLength: 3 }), { minLength: 1, maxLength: 2 })
    .map((alternatives) => alternatives.map((terms) => terms.join('')).join('|')),
  term: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    // Not `\B`, which V8 also finds between the halves of a pair.
    fc.constantFrom('^', '$', '\\b'),
    fc
      .tuple(fc.oneof(fc.constantFrom(...ESCAPES, '.', 'a', 'b', '-', ' ', 'ä', '😀'), CLASS, tie('group')), QUANTIFIER)
      .map((parts) => parts.join(''))
  ),
  group: fc.tuple(fc.constantFrom('(', '(?:', '(?<name>'), tie('pattern')).map(([start, inner]) => `${start}${inner})`)
}))
const ANCHORED = fc.oneof(
  PATTERN,
  fc
    .tuple(fc.constantFrom('^', '^.', '^[ab]\\w'), fc.constantFrom('(?=', '(?!'), PATTERN, PATTERN)
    .map(([start, sign, ahead, main]) => `${start}${sign}${ahead})${main}`)
)

const matchOf = (expression: { test(text: string): boolean }, texts: readonly string[]): string =>
  texts.map((text) => Number(expression.test(text))).join('')

/** Null for one that V8 rejects, such as two groups with the same name. */
const ofV8 = (source: string): RegExp | null => {
  try {
    return new RegExp(source, 'u')
  } catch {
    return null
  }
}

t.test('an expression matches the same texts as in V8 with the flag u', async (t) => {
  let compared = 0
  await checkProperty(
    t,
    fc.property(ANCHORED, fc.array(TEXT, { minLength: 20, maxLength: 20 }), (source, texts) => {
      const expected = ofV8(source)
      if (expected === null) return true
      compared += 1
      const all = [...texts, ...CHARACTERS]
      return matchOf(linearRegExpOfJavaScript(source), all) === matchOf(expected, all)
    }),
    { numRuns: 700 }
  )
  t.ok(compared > 50, `${compared} expressions were compared`)
})

t.test('every class and escape contains the same characters as in V8', async (t) => {
  // The basic plane, and a part of the others.
  const all = Array.from({ length: 0x1_20_00 }, (_, code) => String.fromCodePoint(code))
  for (const source of ['.', ...ESCAPES.filter((each) => /\\[dDwWsSpP]/.test(each)), '[^\\s\\d]', '[\\W\\d]']) {
    t.equal(matchOf(linearRegExpOfJavaScript(source), all), matchOf(new RegExp(source, 'u'), all), source)
  }
})

/** Syntax that the flag `u` does not have. */
const LOOSE: readonly (readonly [source: string, text: string, isMatch: boolean])[] = [
  ['^\\-\\_\\a\\ä$', '-_aä', true],
  ['^[\\w-.]+$', 'a-.', true],
  ['^[\\w-.]+$', 'a,', false],
  ['^{[0-9]{2}}$', '{12}', true],
  ['^a{,2}$', 'a{,2}', true],
  ['^a{2$', 'a{2', true],
  ['^]}$', ']}', true],
  ['^\\x\\u$', 'xu', true],
  ['^\\p\\-$', 'p-', true],
  ['^.\\-$', '😀-', true],
  ['^a\\Bb\\b$', 'ab', true]
]

for (const [source, text, isMatch] of LOOSE)
  t.test(`${source} ${isMatch ? 'matches' : 'does not match'} ${text}`, async (t) => {
    t.equal(linearRegExpOfJavaScript(source).test(text), isMatch)
  })

t.test('counts above those of RE2 are exact', async (t) => {
  for (const [source, min, max] of [
    ['^a{1,2500}$', 1, 2500],
    ['^a{2500}$', 2500, 2500],
    ['^(?:a|a){1500,3200}$', 1500, 3200],
    ['^a{999,1001}$', 999, 1001],
    ['^a{2001,}$', 2001, Number.POSITIVE_INFINITY]
  ] as const) {
    const pattern = linearRegExpOfJavaScript(source)
    for (const length of [0, 1, min - 1, min, min + 1, 1000, 2000, 2500, 3199, ...(max < 1e9 ? [max, max + 1] : [])]) {
      t.equal(pattern.test('a'.repeat(length)), length >= min && length <= max, `${source} ${length}`)
    }
  }
})

for (const [source, message] of [
  ['(', /Unterminated group/],
  ['a(?=b)', /look-ahead is supported only behind "\^" and single characters/],
  ['^a*(?!b)', /look-ahead/],
  ['^(?:(?!a)b)', /look-ahead/],
  ['^(?=(?!a)b)', /look-ahead/],
  ['^(?=a)?\\-', /look-ahead with a quantifier/],
  ['(?<=a)b', /look-behind/],
  ['(?<!a)b', /look-behind/],
  ['(a)\\1', /back references/],
  ['(?<a>b)\\k<a>', /back references/],
  ['\\012', /octal/],
  ['[\\1]', /octal/],
  ['\\c1', /\\c without a letter/],
  ['\\p{Nonsense}', /Invalid property name/],
  ['\\p{L}\\-', /Invalid escape/],
  ['a{10001}', /counts above 10000/],
  ['a{2,10001}', /counts above 10000/],
  ['(?:a{1,100}){1,100}', /invalid repeat count/]
] as const)
  t.test(`${source} is rejected with the reason`, async (t) => {
    t.throws(() => linearRegExpOfJavaScript(source), { name: 'SyntaxError', message })
  })

/** Of published OpenAPI descriptions. */
const PUBLISHED = [
  '^(?:{[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7}}|[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7})$',
  '(me|[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*)',
  'rdme_\\w+',
  '[a-f\\d]{24}',
  '(v{0,1})(stable|([0-9]+)(?:\\.([0-9]+))?(?:\\.([0-9]+))?(-.*)?)(_(.*))?',
  '\\/(versions|branches)\\/((v{0,1})(stable|([0-9]+)(?:\\.([0-9]+))?(?:\\.([0-9]+))?(-.*)?)(_(.*))?)\\/apis\\/((([a-z0-9-_ ]|[^\\\\x00-\\\\x7F])+.(json|yaml|yml)))',
  '([a-z0-9-_ ]|[^\\\\x00-\\\\x7F])+',
  '^(?:#[0-9a-fA-F]{3}|#[0-9a-fA-F]{4}|#[0-9a-fA-F]{6}|#[0-9a-fA-F]{8})$',
  '^[a-zA-Z0-9-_.]+$',
  '^[a-z0-9][a-z0-9-]{1,30}[a-z0-9]$',
  '^[-a-z0-9.+_]+$',
  '^integration:[^:]+:[^:]+$',
  '\\S.*\\S',
  '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?[.]){2,}[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$',
  '^([\\w-]+\\.)*[\\w-]+\\.[a-zA-Z]{2,}(\\/[\\w-]+)+$',
  '^[^\\n\\r]*$',
  '^refs/heads/.+$',
  '^#(?:[0-9a-fA-F]{3}){1,2}$',
  '^\\/(?!\\*)(?!.*\\*.+)(?:[A-Za-z0-9\\-._~+]|%[0-9A-Fa-f]{2})+(?:\\/(?:[A-Za-z0-9\\-._~+]|%[0-9A-Fa-f]{2})+)*(?:\\/\\*|\\*)?$',
  '^@[A-Za-z0-9._-]{3,100}$',
  '^[a-zA-Z0-9_\\*-]+$'
]

t.test('the patterns of published OpenAPI documents match the same texts as in V8', async (t) => {
  const WORDS = [
    '',
    'abc',
    'rdme_a1',
    'v1.2-x_y',
    '/docs/a%20b/*',
    '/a*b',
    '#0aF',
    'refs/heads/main',
    'a.b.example.com'
  ]
  // V8 takes years for some of the patterns on longer texts.
  const TEXT_OF_WORDS = fc
    .array(fc.constantFrom(...WORDS, ...'aZ09-_.:/*%#@ {}', '\n', '0123456789abcdef', 'connection:'), { maxLength: 8 })
    .map((parts) => parts.join('').slice(0, 20))
  for (const source of PUBLISHED) {
    const [pattern, expected] = [linearRegExpOfJavaScript(source), new RegExp(source)]
    await checkProperty(
      t,
      fc.property(TEXT_OF_WORDS, (text) => pattern.test(text) === expected.test(text)),
      { numRuns: 40 }
    )
  }
})
