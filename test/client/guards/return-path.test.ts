import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { safeReturnPath } from '../../../src/client/guards/return-path.js'
import { checkProperty } from '../../helper/property.js'

const ACCEPTED = [
  '/',
  '/zones',
  '/zones/7?tab=a&b=1#top',
  '/search?q=http://example.com//x',
  '/caf%C3%A9',
  '/über',
  '/authors',
  '/apiary'
]

const REJECTED: readonly (readonly [wanted: unknown, title: string])[] = [
  ['', 'nothing'],
  ['zones', 'not from the root'],
  ['//evil.example', 'a host'],
  ['///evil.example', 'a host behind one slash more'],
  ['/\\evil.example', 'a backslash for a slash'],
  ['\\\\evil.example', 'backslashes only'],
  ['/a\\b', 'a backslash anywhere'],
  ['/\t/evil.example', 'a tab, which is dropped'],
  ['/\n/evil.example', 'a line end, which is dropped'],
  ['\u0000/a', 'a control character'],
  ['/a\u200b', 'a character without width'],
  ['/.//evil.example', 'a host once the dot is resolved'],
  ['/a/..//evil.example', 'a host once the dots are resolved'],
  ['/%2e//evil.example', 'a host once an encoded dot is resolved'],
  ['https://evil.example/', 'a scheme'],
  ['javascript:alert(1)', 'a script'],
  ['data:text/html,x', 'a document'],
  [' /zones', 'a space before it'],
  ['/api/zones', 'an API response, not a page'],
  ['/api', 'the API itself'],
  ['/auth/oidc/logout', 'a logout'],
  ['/AUTH/oidc/logout?x', 'a logout in capitals'],
  ['/\ud800', 'a lone surrogate'],
  [`/${'a'.repeat(3000)}`, 'longer than any page'],
  [undefined, 'missing'],
  [null, 'null'],
  [['/zones'], 'a list, as a repeated query parameter gives'],
  [{}, 'an object']
]

t.test('the return path', async (t) => {
  for (const path of ACCEPTED) {
    t.test(`the return path ${path} is accepted`, async (t) => {
      t.equal(safeReturnPath(path), path)
    })
  }
  for (const [wanted, title] of REJECTED) {
    t.test(`the return path is / instead of ${JSON.stringify(wanted)?.slice(0, 60)}: ${title}`, async (t) => {
      t.equal(safeReturnPath(wanted), '/')
    })
  }

  t.test('a return path never leaves the site', async (t) => {
    const piece = fc.oneof(
      fc.constantFrom(
        '/',
        '//',
        '\\',
        '.',
        '..',
        '\t',
        '\n',
        '\r',
        '%2f',
        '%5c',
        '%2e',
        '@',
        ':',
        'http:',
        'evil.example',
        '?',
        '#',
        ' '
      ),
      fc.string({ unit: 'binary', maxLength: 3 })
    )
    const wanted = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''))
    await checkProperty(
      t,
      fc.property(
        fc.oneof(
          wanted,
          wanted.map((text) => `/${text}`)
        ),
        (text) => {
          const first = new URL(safeReturnPath(text), 'https://site.example/login')
          const second = new URL(first.pathname + first.search + first.hash, 'https://site.example/login')
          assert.deepEqual([first.origin, second.origin], ['https://site.example', 'https://site.example'])
          encodeURIComponent(safeReturnPath(text))
        }
      ),
      { numRuns: 2000 }
    )
  })
})
