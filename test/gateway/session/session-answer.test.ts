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
  for (const [what, response] of responses) {
    t.test(`a login response is no session if it is ${what}`, async (t) => {
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
  for (const [what, token] of rejected) {
    t.test(`the token is rejected: ${what}`, async (t) => {
      t.equal(session({ token }), null)
    })
  }
})

t.test('session expiry', async (t) => {
  const found: readonly (readonly [string, Record<string, unknown>, number])[] = [
    [
      "is the standard token's own, in seconds",
      { token: tokenFrom(NOW, 'jwt') },
      Math.floor(NOW / 1000) * 1000 + HOUR_MS
    ],
    ["is the legacy token's own, in milliseconds", { token: tokenFrom(NOW, 'legacy') }, NOW + HOUR_MS],
    [
      "is the token's own where the answer says it has ended",
      { token: tokenFrom(NOW, 'legacy'), expiresIn: 0 },
      NOW + HOUR_MS
    ],
    [
      "is the token's own where the answer says nothing",
      { token: tokenFrom(NOW, 'legacy'), expiresIn: undefined },
      NOW + HOUR_MS
    ],
    ['is a whole number of milliseconds', { token: unsigned({ exp: NOW / 1000 + 1.0004 }) }, NOW + 1000],
    ["is the answer's where the token is opaque", { expiresIn: 90 }, NOW + 90_000],
    ["is the answer's where the token has no expiry", { token: unsigned({ sub: '7' }), expiresIn: 90 }, NOW + 90_000],
    [
      "is the answer's where the token's is text",
      { token: unsigned({ exp: '9999999999' }), expiresIn: 90 },
      NOW + 90_000
    ],
    ["is the answer's where the token's payload is no object", { token: unsigned([1]), expiresIn: 90 }, NOW + 90_000],
    ['may be a fraction of a second away', { expiresIn: 0.25 }, NOW + 250],
    ['may be as far away as a date can be', { expiresIn: (8.64e15 - NOW) / 1000 }, 8.64e15]
  ]
  for (const [what, data, expected] of found) {
    t.test(what, async (t) => {
      t.equal(session(data)?.expiresAtMs, expected)
    })
  }

  const none: readonly (readonly [string, Record<string, unknown>])[] = [
    ['the standard token has expired', { token: tokenFrom(NOW - 2 * HOUR_MS, 'jwt') }],
    ['the legacy token has expired', { token: tokenFrom(NOW - 2 * HOUR_MS, 'legacy') }],
    ['the token ends at this very moment', { token: tokenFrom(NOW - HOUR_MS, 'legacy') }],
    ['an opaque token comes without one', { expiresIn: undefined }],
    ['it is null', { expiresIn: null }],
    ['it is 0', { expiresIn: 0 }],
    ['it is negative', { expiresIn: -60 }],
    ['it is NaN', { expiresIn: Number.NaN }],
    ['it is infinite', { expiresIn: Number.POSITIVE_INFINITY }],
    ['it is text', { expiresIn: '3600' }],
    ['it is a list', { expiresIn: [3600] }],
    ['no date can be that far away', { expiresIn: 8.64e12 }],
    ["the token's own is beyond every date", { token: unsigned({ exp: 1e300 }) }]
  ]
  for (const [why, data] of none) {
    t.test(`a login response is no session if ${why}`, async (t) => {
      t.equal(session(data), null)
    })
  }
})

t.test('session lifetime', async (t) => {
  const lifetimes: readonly (readonly [string, Record<string, unknown>, number])[] = [
    ['is what the answer says, to the second', { expiresIn: 3600 }, 3600],
    ['is no part of a second longer than the token', { expiresIn: 3599.9 }, 3599],
    ["is the rest of the token's own", { token: tokenFrom(NOW - 1000, 'legacy') }, 3599]
  ]
  for (const [what, data, expected] of lifetimes) {
    t.test(what, async (t) => {
      t.equal(session(data)?.lifetimeSeconds, expected)
    })
  }
})

t.test('session user', async (t) => {
  const nobody = { userId: null, email: null, displayName: null, role: null }
  const LONGEST = { userId: 'a'.repeat(128), email: 'a'.repeat(254), role: 'a'.repeat(64) }
  const users: readonly (readonly [string, unknown, object])[] = [
    ['takes its number', { userId: 7 }, { userId: 7 }],
    ['takes its id as text', { userId: 'u-7' }, { userId: 'u-7' }],
    ['takes 0 for an id', { userId: 0 }, { userId: 0 }],
    ['takes id where there is no userId', { id: 8 }, { userId: 8 }],
    ['takes id where userId is null', { userId: null, id: 8 }, { userId: 8 }],
    ['takes userId before id', { userId: 7, id: 8 }, { userId: 7 }],
    ['takes name where there is no displayName', { name: 'Ada' }, { displayName: 'Ada' }],
    ['takes displayName before name', { displayName: 'Ada E.', name: 'Ada' }, { displayName: 'Ada E.' }],
    ['takes text of any alphabet', { displayName: 'Zoë 日本 👩‍🚒' }, { displayName: 'Zoë 日本 👩‍🚒' }],
    ['takes empty text', { displayName: '', name: 'Ada' }, { displayName: '' }],
    ['cuts a long name', { displayName: 'a'.repeat(201) }, { displayName: 'a'.repeat(200) }],
    ['takes the longest id, address and role', LONGEST, LONGEST],
    [
      'takes nothing of an id, address or role that is longer',
      Object.fromEntries(Object.entries(LONGEST).map(([name, text]) => [name, `${text}a`])),
      {}
    ],
    ['takes no number for an id that could be none', { userId: 1.5, id: 8 }, {}],
    ['takes no number for an id that may be another', { userId: 2 ** 53 }, {}],
    ['takes nothing of another type', { userId: {}, email: 1, displayName: ['Ada'], role: true }, {}],
    ['takes nothing but its four fields', { passwordHash: 'x', permissions: ['a'] }, {}],
    ['is unknown where it is empty', {}, {}],
    ['is unknown where it is null', null, {}],
    ['is unknown where it is missing', undefined, {}],
    ['is unknown where it is text', 'ada', {}]
  ]
  for (const [what, user, expected] of users) {
    t.test(what, async (t) => {
      const found = session({ user })?.user
      t.strictSame(found, { ...nobody, ...expected })
      t.ok(Value.Check(AuthUserSchema, found), 'and is what pages may rely on')
    })
  }
})

t.test('session permissions', async (t) => {
  const claiming = (permissions: unknown) => tokenFrom(NOW, 'legacy', { permissions })
  const permissions: readonly (readonly [string, Record<string, unknown>, readonly string[]])[] = [
    ["are the user's", { user: { permissions: ['u'] }, permissions: ['d'], token: claiming(['t']) }, ['u']],
    [
      "are the user's where they are none",
      { user: { permissions: [] }, permissions: ['d'], token: claiming(['t']) },
      []
    ],
    ["are else the answer's", { permissions: ['d'], token: claiming(['t']) }, ['d']],
    ["are else the answer's where the user's are no list", { user: { permissions: 'u' }, permissions: ['d'] }, ['d']],
    ["are else the legacy token's", { token: claiming(['t']) }, ['t']],
    ["are else the standard token's", { token: tokenFrom(NOW, 'jwt', { permissions: ['t'] }) }, ['t']],
    ["are else the token's where the answer's are null", { permissions: null, token: claiming(['t']) }, ['t']],
    ['are else none', {}, []],
    ['are none where nothing is a list', { user: { permissions: {} }, permissions: 'd', token: claiming('t') }, []],
    ['are text, whatever else is in the list', { permissions: ['a', 1, null, ['b'], { c: 1 }, 'd'] }, ['a', 'd']],
    ['stay in order, doubles included', { permissions: ['b', 'a', 'b'] }, ['b', 'a', 'b']]
  ]
  for (const [what, data, expected] of permissions) {
    t.test(what, async (t) => {
      t.strictSame(session(data)?.permissions, expected)
    })
  }
})
