import t from 'tap'
import { startGateway, tokenOf } from '../../helper/gateway.js'

const jwt = tokenOf('operator')

const CASES: readonly (readonly [string, Record<string, string | string[]>, string | undefined])[] = [
  ['the cookie', { cookie: `auth_token=${jwt}` }, `Bearer ${jwt}`],
  ['the cookie among others', { cookie: `a=b; auth_token=${jwt}; c=d` }, `Bearer ${jwt}`],
  ['the cookie in quotes', { cookie: `auth_token="${jwt}"` }, `Bearer ${jwt}`],
  ['the cookie, decoded once', { cookie: `auth_token=${jwt.replaceAll('.', '%2E')}` }, `Bearer ${jwt}`],
  ['the cookie before the header', { cookie: `auth_token=${jwt}`, authorization: 'Bearer other' }, `Bearer ${jwt}`],
  [
    'a cookie that the gateway cannot verify: the backend decides',
    { cookie: 'auth_token=un.known' },
    'Bearer un.known'
  ],
  ['the same cookie twice', { cookie: `auth_token=${jwt}; auth_token=${jwt}` }, `Bearer ${jwt}`],
  ['the header if there is no cookie', { authorization: 'Bearer abc.def' }, 'Bearer abc.def'],
  [
    'the header if the only cookie has another name',
    { cookie: 'my_auth_token=x', authorization: 'Bearer abc' },
    'Bearer abc'
  ],
  ['the header if the cookie is empty', { cookie: 'auth_token=', authorization: 'Bearer abc' }, 'Bearer abc'],
  ['the cookie beside an empty one', { cookie: `auth_token=; auth_token=${jwt}` }, `Bearer ${jwt}`],
  ['the cookie before an empty one', { cookie: `auth_token=${jwt}; auth_token=` }, `Bearer ${jwt}`],
  [
    'the cookie beside null and undefined',
    { cookie: `auth_token=null; auth_token=undefined; auth_token=${jwt}` },
    `Bearer ${jwt}`
  ],
  ['the header if the cookie is null', { cookie: 'auth_token=null', authorization: 'Bearer abc' }, 'Bearer abc'],
  [
    'the header if the cookie is undefined',
    { cookie: 'auth_token=undefined', authorization: 'Bearer abc' },
    'Bearer abc'
  ],
  [
    'the header if the cookie is encoded null',
    { cookie: 'auth_token=%6Eull', authorization: 'Bearer abc' },
    'Bearer abc'
  ],
  ['the header in any case of its scheme', { authorization: 'bEARER abc' }, 'Bearer abc'],
  ['no Authorization if there is no token', {}, undefined],
  ['no Authorization for Bearer null', { authorization: 'Bearer null' }, undefined],
  ['no Authorization for Bearer undefined', { authorization: 'Bearer undefined' }, undefined],
  ['no Authorization for Bearer NULL', { authorization: 'Bearer NULL' }, undefined],
  ['no Authorization for an empty Bearer', { authorization: 'Bearer ' }, undefined],
  ['no Authorization for another scheme', { authorization: 'Basic dXNlcjpwdw==' }, undefined],
  ['no Authorization for two tokens in one header', { authorization: 'Bearer a, Bearer b' }, undefined],
  ['no Authorization for a null cookie', { cookie: 'auth_token=null' }, undefined],
  ['no Authorization for a cookie whose name begins with byte 0xA0', { cookie: `\u00a0auth_token=${jwt}` }, undefined],
  ['no Authorization for an undefined cookie', { cookie: 'auth_token=undefined' }, undefined],
  ['no Authorization for two different cookies', { cookie: 'auth_token=a.b; auth_token=c.d' }, undefined],
  [
    'no Authorization for two different cookies and a header',
    { cookie: 'auth_token=a.b; auth_token=c.d', authorization: 'Bearer abc' },
    undefined
  ],
  ['no Authorization for a cookie with a line break in it', { cookie: 'auth_token=a%0d%0aX-Evil:%201' }, undefined],
  ['no Authorization for a cookie that was encoded twice', { cookie: 'auth_token=a%252Eb' }, undefined],
  ['no Authorization for a cookie with broken encoding', { cookie: 'auth_token=a%zz' }, undefined]
]

t.test('Authorization header for the backend', async (t) => {
  const { send, backend } = await startGateway(t)
  for (const [title, headers, expected] of CASES) {
    t.test(`the backend gets ${title}`, async (t) => {
      backend.requests.length = 0
      t.equal((await send('/api/things', { headers })).status, 200)
      t.equal(backend.requests[0]?.headers.authorization, expected)
      t.equal(backend.requests[0]?.headers['x-evil'], undefined)
      t.equal(backend.requests[0]?.headers.cookie, undefined, 'cookies are never forwarded')
    })
  }
})
