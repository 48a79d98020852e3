import t from 'tap'
import { isOriginPattern } from '../../src/shared/origin-pattern.js'

const CASES: readonly (readonly [text: string, isOne: boolean, title: string])[] = [
  ['*', true, 'all, written out'],
  ['https://app.example.com', true, 'an origin'],
  ['HTTPS://App.Example.COM', true, 'an origin in other letters'],
  ['http://localhost:3000', true, 'an origin with a port'],
  ['http://192.0.2.7:8080', true, 'an address'],
  ['http://[::1]:3000', true, 'an IPv6 address'],
  ['https://*.example.com', true, 'a pattern'],
  ['https://*.example.com:8443', true, 'a pattern with a port'],
  ['capacitor://localhost', true, "an app's own scheme"],
  ['chrome-extension://abcdefghijklmnop', true, "an extension's scheme"],
  ['', false, 'nothing'],
  ['null', false, 'the origin of sandboxed pages, which anybody can have'],
  ['**', false, 'two stars'],
  ['*.example.com', false, 'no scheme'],
  ['app.example.com', false, 'no scheme'],
  ['https://', false, 'no host'],
  ['https://*', false, 'a star for the whole host'],
  ['https://*.', false, 'a star and nothing behind it'],
  ['https://*.*.example.com', false, 'two patterns'],
  ['https://app.*.com', false, 'a pattern in the middle'],
  ['https://*app.example.com', false, 'part of a label'],
  ['https://app.example.com:*', false, 'a pattern for the port'],
  ['https://app.example.com/', false, 'a path'],
  ['https://app.example.com?a', false, 'a query'],
  ['https://user@app.example.com', false, 'a user'],
  ['https://app.example.com:443', false, "the scheme's own port, which no browser sends"],
  ['http://*.example.com:80', false, "the scheme's own port in a pattern"],
  ['https://app.example.com:99999', false, 'no port'],
  ['https://app.example.com, https://b.example', false, 'a list'],
  [' https://app.example.com', false, 'blanks']
]

t.test('an origin pattern', async (t) => {
  for (const [text, isOne, title] of CASES) {
    t.test(`an origin pattern ${isOne ? 'may be' : 'is not'} ${title}: ${JSON.stringify(text)}`, async (t) => {
      t.equal(isOriginPattern(text), isOne)
    })
  }
})
