import t from 'tap'
import { foldedPath, foldedText } from '../../../src/gateway/http/folded-text.js'

const EQUAL: readonly (readonly [one: string, other: string])[] = [
  ['okta', 'OKTA'],
  ['groups', 'group\u017f'],
  ['okta', 'o\u212ata'],
  ['okta', '\uff4fkta'],
  ['okta', 'ok\u200bta'],
  ['okta', '\ufeffokta\u00ad'],
  ['login', 'log\u0131n'],
  ['login', 'LOG\u0130N'],
  ['strasse', 'stra\u00dfe'],
  ['strasse', 'STRA\u1e9eE'],
  ['\u03c3', '\u03c2'],
  ['office', 'o\ufb03ce'],
  ['\u00e9', 'E\u0301']
]

t.test('texts that a lenient server compares as equal have the same folded form', async (t) => {
  for (const [one, other] of EQUAL) t.equal(foldedText(other), foldedText(one), `${one} ${other}`)
  t.equal(foldedPath('/api/%EF%BC%A1dmin'), '/api/admin')
  t.not(foldedText('okta'), foldedText('ókta'))
})

t.test('a folded text is its own folded form, for every character', async (t) => {
  const changed: string[] = []
  for (let code = 0; code < 0x20000; code += 1) {
    if (code >= 0xd800 && code < 0xe000) continue
    const folded = foldedText(`a${String.fromCodePoint(code)}`)
    if (foldedText(folded) !== folded) changed.push(code.toString(16))
  }
  t.same(changed, [])
})
