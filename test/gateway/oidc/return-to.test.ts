import t from 'tap'
import { returnPath } from '../../../src/gateway/oidc/return-path.js'
import { APP, browserOf, signIn, startOidcGateway, startProvider } from './fixture.js'

const PATHS = [
  '/',
  '/floors',
  '/floors?level=2',
  '/floors/a%20b',
  '/floors?next=%2F%2Fevil.test',
  '/floors#map',
  '/a?b=c#d'
]

// Spellings that some browser, proxy or library resolves to another site or to the sign-in itself.
const ELSEWHERE: readonly (readonly [spelling: unknown, title: string])[] = [
  ['https://evil.test/', 'an address'],
  ['//evil.test', 'without a scheme'],
  ['///evil.test', 'three slashes'],
  ['/\\evil.test', 'a backslash'],
  ['\\/evil.test', 'a backslash first'],
  ['\\\\evil.test', 'two backslashes'],
  ['/\t/evil.test', 'a tab that parsers drop'],
  ['/\n/evil.test', 'a line that parsers drop'],
  ['\t//evil.test', 'a tab first'],
  [' //evil.test', 'a blank first'],
  ['/%09/evil.test', 'an encoded tab'],
  ['/%5cevil.test', 'an encoded backslash'],
  ['/%2f/evil.test', 'an encoded slash'],
  ['/.//evil.test', 'a dot, then nothing'],
  ['/..//evil.test', 'two dots, then nothing'],
  ['/%2e%2e//evil.test', 'encoded dots'],
  ['/;//evil.test', 'a parameter'],
  ['http:evil.test', 'a scheme without slashes'],
  ['http:/evil.test', 'a scheme with one slash'],
  ['https:///evil.test', 'a scheme with three'],
  ['javascript:alert(1)', 'a script'],
  ['data:text/html,x', 'a page of its own'],
  ['evil.test', 'a name'],
  ['@evil.test', 'a host behind a user'],
  ['/@evil.test//x', 'an empty segment'],
  ['/\u2215evil.test', 'a look-alike slash'],
  ['/\uff0f\uff0fevil.test', 'wide slashes'],
  ['/a\r\nset-cookie: x=1', 'a header'],
  ['/a?b=\r\nx', 'a header in the query'],
  ['/\u0000', 'a zero'],
  ['', 'nothing'],
  ['?a', 'a query alone'],
  ['#a', 'a fragment alone'],
  ['/auth/oidc/login', 'the sign-in itself'],
  ['/auth/oidc/logout', 'the way out'],
  ['/AUTH/oidc/logout', 'the way out, in capitals'],
  [`/${'a'.repeat(2000)}`, 'too long for a cookie'],
  [null, 'none'],
  [['/a'], 'several']
]

t.test('return path', async (t) => {
  for (const path of PATHS) {
    t.test(`the return path ${path} is accepted`, async (t) => {
      t.equal(returnPath(path), path)
    })
  }

  for (const [spelling, title] of ELSEWHERE) {
    t.test(`the return path ${JSON.stringify(spelling)?.slice(0, 60)} becomes /: ${title}`, async (t) => {
      t.equal(returnPath(spelling), '/')
    })
  }

  t.test('any return path leads to this site', async (t) => {
    const provider = await startProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const browser = browserOf(gateway)
    for (const [spelling] of ELSEWHERE.slice(0, 12)) {
      const { url } = await signIn(browser, 'ada', String(spelling))
      t.equal(url.href, `${APP}/`, JSON.stringify(spelling))
    }
  })
})
