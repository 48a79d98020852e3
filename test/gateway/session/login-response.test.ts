import { createSecretKey } from 'node:crypto'
import { Value } from '@sinclair/typebox/value'
import t from 'tap'
import { AuthUserSchema } from '../../../schemas/session.js'
import { readLoginResponse } from '../../../src/gateway/session/login-response.js'
import { createAppToken } from '../../../src/shared/app-token.js'

const NOW = Date.parse('2026-05-04T12:00:00.500Z')
const HOUR_MS = 3_600_000
const key = createSecretKey('a-secret-of-the-backend-alone-0123456789', 'utf8')

const tokenFrom = (nowMs: number, format: 'jwt' | 'legacy', claims: Readonly<Record<string, unknown>> = {}): string =>
  createAppToken(claims, key, { format, lifetimeSeconds: 3600, nowMs })

/** A token of neither format, which says nothing about its expiry. */
const OPAQUE = 'opaque-token'

const unsigned = (claims: unknown): string => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`

const session = (data: Readonly<Record<string, unknown>> = {}) =>
  readLoginResponse({ success: true, data: { token: OPAQUE, user: {}, expiresIn: 60, ...data } }, NOW).session

t.test('login response', async (t) => {
  t.test('a complete login response is a session', async (t) => {
    const token = tokenFrom(NOW, 'jwt')
    const user = { userId: 7, email: 'ada@example.com', displayName: 'Ada Example', role: 'admin', permissions: ['a'] }
    t.strictSame(readLoginResponse({ success: true, data: { token, user, expiresIn: 60 } }, NOW).session, {
      token,
      user: { userId: 7, email: 'ada@example.com', displayName: 'Ada Example', role: 'admin' },
      permissions: ['a'],
      expiresAtMs: Date.parse('2026-05-04T13:00:00.000Z'),
      lifetimeSeconds: 3599
    })
  })

  const data = { token: OPAQUE, user: {}, expiresIn: 60 }
  const responses: readonly (readonly [string, unknown])[] = [
    ['nothing', undefined],
    ['null', null],
    ['text', 'success'],
    ['a number', 1],
    ['a list', [{ success: true, data }]],
    ['an empty object', {}],
    ['not a success', { success: false, data }],
    ['without a word on success', { data }],
    ['a success in text only', { success: 'true', data }],
    ['a success in numbers only', { success: 1, data }],
    ['without data', { success: true }],
    ['null where data should be', { success: true, data: null }],
    ['text where data should be', { success: true, data: OPAQUE }],
    ['a list where data should be', { success: true, data: [data] }],
    ['a session beside data', { success: true, ...data }]
  ]
  for (const [title, response] of responses) {
    t.test(`a login response is no session if it is ${title}`, async (t) => {
      t.equal(readLoginResponse(response, NOW).session, null)
    })
  }
})

t.test('token of a login response', async (t) => {
  for (const token of [OPAQUE, 'a', 'a.b', 'a.b.c', 'a.b.c.d', 'AZaz09-._~+/=', 'nullable', 'not-undefined']) {
    t.test(`the token ${token} is accepted`, async (t) => {
      t.equal(session({ token })?.token, token)
    })
  }

  const rejected: readonly (readonly [string, unknown])[] = [
    ['missing', undefined],
    ['null', null],
    ['the word null', 'null'],
    ['the word undefined', 'undefined'],
    ['the word NULL', 'NULL'],
    ['a number', 7],
    ['an object', { token: OPAQUE }],
    ['a list', [OPAQUE]],
    ['empty', ''],
    ['with a line break', 'abc\r\nx-evil: 1'],
    ['with a line break at its end', 'abc\n'],
    ['with a space', 'abc def'],
    ['with a semicolon', 'abc; Domain=example.com'],
    ['with a comma', 'abc,def'],
    ['with a quote', '"abc"'],
    ['with a percent sign', 'abc%2E'],
    ['with a null character', 'abc\0'],
    ['with a letter of another alphabet', 'абв'],
    ['with half a surrogate pair', 'abc\ud800']
  ]
  for (const [title, token] of rejected) {
    t.test(`the token is rejected: ${title}`, async (t) => {
      t.equal(session({ token }), null)
    })
  }
})

t.test('session expiry', async (t) => {
  const found: readonly (readonly [string, Record<string, unknown>, number])[] = [
    [
      'the expiry of a standard token is read in seconds',
      { token: tokenFrom(NOW, 'jwt') },
      Math.floor(NOW / 1000) * 1000 + HOUR_MS
    ],
    ['the expiry of a legacy token is read in milliseconds', { token: tokenFrom(NOW, 'legacy') }, NOW + HOUR_MS],
    ['the expiry of the token wins over expiresIn 0', { token: tokenFrom(NOW, 'legacy'), expiresIn: 0 }, NOW + HOUR_MS],
    [
      'the expiry of the token is used if the response has no expiresIn',
      { token: tokenFrom(NOW, 'legacy'), expiresIn: undefined },
      NOW + HOUR_MS
    ],
    ['the expiry is rounded down to whole milliseconds', { token: unsigned({ exp: NOW / 1000 + 1.0004 }) }, NOW + 1000],
    ['expiresIn is used if the token is opaque', { expiresIn: 90 }, NOW + 90_000],
    ['expiresIn is used if the token has no expiry', { token: unsigned({ sub: '7' }), expiresIn: 90 }, NOW + 90_000],
    [
      'expiresIn is used if the expiry of the token is a string',
      { token: unsigned({ exp: '9999999999' }), expiresIn: 90 },
      NOW + 90_000
    ],
    [
      'expiresIn is used if the payload of the token is not an object',
      { token: unsigned([1]), expiresIn: 90 },
      NOW + 90_000
    ],
    ['the expiry may be a fraction of a second away', { expiresIn: 0.25 }, NOW + 250],
    ['the expiry may be the latest valid date', { expiresIn: (8.64e15 - NOW) / 1000 }, 8.64e15]
  ]
  for (const [title, data, expected] of found) {
    t.test(title, async (t) => {
      t.equal(session(data)?.expiresAtMs, expected)
    })
  }

  const none: readonly (readonly [string, Record<string, unknown>])[] = [
    ['the standard token has expired', { token: tokenFrom(NOW - 2 * HOUR_MS, 'jwt') }],
    ['the legacy token has expired', { token: tokenFrom(NOW - 2 * HOUR_MS, 'legacy') }],
    ['the token expires at the current time', { token: tokenFrom(NOW - HOUR_MS, 'legacy') }],
    ['an opaque token has no expiresIn', { expiresIn: undefined }],
    ['expiresIn is null', { expiresIn: null }],
    ['expiresIn is 0', { expiresIn: 0 }],
    ['expiresIn is negative', { expiresIn: -60 }],
    ['expiresIn is NaN', { expiresIn: Number.NaN }],
    ['expiresIn is infinite', { expiresIn: Number.POSITIVE_INFINITY }],
    ['expiresIn is a string', { expiresIn: '3600' }],
    ['expiresIn is an array', { expiresIn: [3600] }],
    ['expiresIn exceeds the latest valid date', { expiresIn: 8.64e12 }],
    ['the expiry of the token exceeds the latest valid date', { token: unsigned({ exp: 1e300 }) }]
  ]
  for (const [title, data] of none) {
    t.test(`a login response is no session if ${title}`, async (t) => {
      t.equal(session(data), null)
    })
  }
})

t.test('session lifetime', async (t) => {
  const lifetimes: readonly (readonly [string, Record<string, unknown>, number])[] = [
    ['the session lifetime is expiresIn', { expiresIn: 3600 }, 3600],
    ['the session lifetime is rounded down to whole seconds', { expiresIn: 3599.9 }, 3599],
    ['the session lifetime is the remaining lifetime of the token', { token: tokenFrom(NOW - 1000, 'legacy') }, 3599]
  ]
  for (const [title, data, expected] of lifetimes) {
    t.test(title, async (t) => {
      t.equal(session(data)?.lifetimeSeconds, expected)
    })
  }
})

t.test('session user', async (t) => {
  const noUser = { userId: null, email: null, displayName: null, role: null }
  const LONGEST = { userId: 'a'.repeat(128), email: 'a'.repeat(254), role: 'a'.repeat(64) }
  const users: readonly (readonly [string, unknown, object])[] = [
    ['a user has a numeric userId', { userId: 7 }, { userId: 7 }],
    ['a user has a string userId', { userId: 'u-7' }, { userId: 'u-7' }],
    ['a user may have the userId 0', { userId: 0 }, { userId: 0 }],
    ['a user without userId has the id as userId', { id: 8 }, { userId: 8 }],
    ['a user whose userId is null has the id as userId', { userId: null, id: 8 }, { userId: 8 }],
    ['the userId of a user wins over id', { userId: 7, id: 8 }, { userId: 7 }],
    ['a user without displayName has the name as displayName', { name: 'Ada' }, { displayName: 'Ada' }],
    ['the displayName of a user wins over name', { displayName: 'Ada E.', name: 'Ada' }, { displayName: 'Ada E.' }],
    ['a displayName may contain any Unicode text', { displayName: 'Zoë 日本 👩‍🚒' }, { displayName: 'Zoë 日本 👩‍🚒' }],
    ['a displayName may be empty', { displayName: '', name: 'Ada' }, { displayName: '' }],
    ['a long displayName is truncated', { displayName: 'a'.repeat(201) }, { displayName: 'a'.repeat(200) }],
    ['a user may have the longest userId, email and role', LONGEST, LONGEST],
    [
      'a userId, email or role that is too long is ignored',
      Object.fromEntries(Object.entries(LONGEST).map(([name, text]) => [name, `${text}a`])),
      {}
    ],
    ['a fractional userId is ignored', { userId: 1.5, id: 8 }, {}],
    ['a userId that is not a safe integer is ignored', { userId: 2 ** 53 }, {}],
    ['user fields of the wrong type are ignored', { userId: {}, email: 1, displayName: ['Ada'], role: true }, {}],
    ['unknown user fields are ignored', { passwordHash: 'x', permissions: ['a'] }, {}],
    ['an empty user object has no fields', {}, {}],
    ['a user that is null has no fields', null, {}],
    ['a missing user has no fields', undefined, {}],
    ['a user that is a string has no fields', 'ada', {}]
  ]
  for (const [title, user, expected] of users) {
    t.test(title, async (t) => {
      const found = session({ user })?.user
      t.strictSame(found, { ...noUser, ...expected })
      t.ok(Value.Check(AuthUserSchema, found), 'it matches the schema of the session user')
    })
  }
})

t.test('session permissions', async (t) => {
  const claiming = (permissions: unknown) => tokenFrom(NOW, 'legacy', { permissions })
  const permissions: readonly (readonly [string, Record<string, unknown>, readonly string[]])[] = [
    [
      'the permissions of the user come first',
      { user: { permissions: ['u'] }, permissions: ['d'], token: claiming(['t']) },
      ['u']
    ],
    [
      'an empty permission list of the user wins',
      { user: { permissions: [] }, permissions: ['d'], token: claiming(['t']) },
      []
    ],
    ['the permissions of the response come second', { permissions: ['d'], token: claiming(['t']) }, ['d']],
    [
      'the permissions of the response are used if those of the user are not an array',
      { user: { permissions: 'u' }, permissions: ['d'] },
      ['d']
    ],
    ['the permissions of a legacy token come last', { token: claiming(['t']) }, ['t']],
    ['the permissions of a standard token come last', { token: tokenFrom(NOW, 'jwt', { permissions: ['t'] }) }, ['t']],
    [
      'the permissions of the token are used if those of the response are null',
      { permissions: null, token: claiming(['t']) },
      ['t']
    ],
    ['a session has no permissions by default', {}, []],
    [
      'a session has no permissions if none of the sources is an array',
      { user: { permissions: {} }, permissions: 'd', token: claiming('t') },
      []
    ],
    ['permissions that are not strings are ignored', { permissions: ['a', 1, null, ['b'], { c: 1 }, 'd'] }, ['a', 'd']],
    ['permissions keep their order and duplicates', { permissions: ['b', 'a', 'b'] }, ['b', 'a', 'b']]
  ]
  for (const [title, data, expected] of permissions) {
    t.test(title, async (t) => {
      t.strictSame(session(data)?.permissions, expected)
    })
  }
})
