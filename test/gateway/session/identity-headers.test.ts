import fc from 'fast-check'
import t from 'tap'
import {
  DEFAULT_IDENTITY_HEADERS,
  IdentityHeaders,
  identityHeaderErrors
} from '../../../src/gateway/session/identity-headers.js'
import { checkProperty } from '../../helper/property.js'

const EXP = 4_000_000_000
const headers = new IdentityHeaders(DEFAULT_IDENTITY_HEADERS)
const sent = (claims: Readonly<Record<string, unknown>>): readonly string[] => headers.of({ exp: EXP, ...claims })

t.test('identity headers carry user, email, role and permissions of the claims', async (t) => {
  const claims = { userId: 'u-1', email: 'ada@example.com', role: 'admin', permissions: ['read', 'write'] }
  t.strictSame(sent(claims), [
    'x-auth-user',
    'u-1',
    'x-auth-email',
    'ada@example.com',
    'x-auth-role',
    'admin',
    'x-auth-permissions',
    'read,write'
  ])
  t.strictSame(sent({ sub: 42 }), ['x-auth-user', '42'])
})

const VALUES: readonly (readonly [string, unknown, string | undefined])[] = [
  ['a blank inside', 'floor manager', 'floor manager'],
  ['blanks at both ends', ' admin ', '%20admin%20'],
  ['a line break', 'admin\r\nx-auth-user: root', 'admin%0D%0Ax-auth-user: root'],
  ['a zero byte', 'admin\0', 'admin%00'],
  ['letters outside of ASCII', 'rôle', 'r%C3%B4le'],
  ['a percent sign', '%41dmin', '%2541dmin'],
  ['half of a surrogate pair', 'a\ud800', undefined],
  ['a list', ['admin'], undefined],
  ['an empty text', '', undefined]
]

for (const [what, role, expected] of VALUES) {
  t.test(`a role that is or has ${what} reaches the backend in one form or not at all`, async (t) => {
    t.equal(sent({ role })[1], expected)
  })
}

t.test('permissions with commas stay apart, and entries of other types are left out', async (t) => {
  t.equal(sent({ permissions: ['a,b', 'c', 7, '', null] })[1], 'a%2Cb,c')
  t.strictSame(sent({ permissions: [] }), [])
  t.strictSame(sent({ permissions: 'admin' }), [])
})

t.test('the header of every user decodes to the id in the claims', async (t) => {
  await checkProperty(
    t,
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), (userId) => {
      const [, value = ''] = sent({ userId })
      if (decodeURIComponent(value) !== userId || value.trim() !== value || /[^ -~]/.test(value)) throw new Error(value)
    })
  )
})

t.test('names that a server may read as an identity header are recognised', async (t) => {
  for (const name of ['x-auth-user', 'X-AUTH-USER', 'x_auth_user', 'x-auth_user', 'x.auth.user', 'x~auth-user'])
    t.ok(headers.includes(name), name)
  for (const name of ['x-auth', 'x-auth-users', 'auth-user', 'xauthuser']) t.notOk(headers.includes(name), name)
})

t.test('header names of identity fields are checked', async (t) => {
  t.strictSame(identityHeaderErrors(DEFAULT_IDENTITY_HEADERS), [])
  t.strictSame(identityHeaderErrors({ user: 'X User' }), ['user must be a header name such as X-Auth-User'])
  t.strictSame(identityHeaderErrors({ user: 'X_User' }), ['user must be a header name such as X-Auth-User'])
  t.strictSame(identityHeaderErrors({ user: 'X-User', role: 'x-user' }), [
    'role must not be x-user, which is also the header of user'
  ])
  for (const name of ['Authorization', 'Cookie', 'X-Forwarded-User', 'content-length', 'Sec-WebSocket-Key', 'upgrade'])
    t.strictSame(identityHeaderErrors({ email: name }), [
      `email must not be the header ${name}, which has another meaning`
    ])
})
