import { Check } from '@sinclair/typebox/value'
import fc from 'fast-check'
import t from 'tap'
import { AuthUserSchema, TokenExpirySchema } from '../../../schemas/session.js'
import { backendPermissions } from '../../../src/client/session/backend-permissions.js'
import { SIGNED_OUT, sessionState } from '../../../src/client/session/session-state.js'
import { checkProperty } from '../../helper/property.js'

const NOW = 1_763_200_000_000
const LATER = NOW + 60_000
const ADA = { userId: 7, email: 'ada@example.com', displayName: 'Ada Exämple; =', role: 'admin' }

const cookies = (values: Readonly<Record<string, unknown>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`)
    .join('; ')

t.test('the session in the cookies', async (t) => {
  t.test('the cookies contain the user, permissions and expiry', async (t) => {
    const text = cookies({ auth_user: ADA, auth_permissions: ['personnel.read'], auth_token_expiry: LATER })
    t.same(sessionState(text, NOW), {
      isSignedIn: true,
      user: ADA,
      permissions: ['personnel.read'],
      expiresAtMs: LATER
    })
  })

  t.test('permissions are unknown without their cookie', async (t) => {
    t.equal(sessionState(cookies({ auth_user: ADA, auth_token_expiry: LATER }), NOW).permissions, null)
  })

  t.test('the token cookie is never read', async (t) => {
    t.same(sessionState('auth_token=abc', NOW), SIGNED_OUT)
  })

  const noSession: readonly (readonly [title: string, expiry: unknown])[] = [
    ['in the past', NOW - 1],
    ['now', NOW],
    ['of null', 'null'],
    ['that is text', '"soon"'],
    ['with a fraction', LATER + 0.5],
    ['before 1970', -1],
    ['of infinity', '1e999'],
    ['that is a list', [LATER]],
    ['that is a truncated number', '17e'],
    ['that is empty', '']
  ]
  for (const [title, auth_token_expiry] of noSession) {
    t.test(`there is no session with an expiry ${title}`, async (t) => {
      t.same(sessionState(cookies({ auth_user: ADA, auth_permissions: ['a.b'], auth_token_expiry }), NOW), SIGNED_OUT)
    })
  }

  t.test('there is no session with two expiry cookies', async (t) => {
    t.same(sessionState(`auth_token_expiry=${LATER}; auth_token_expiry=${LATER + 1}`, NOW), SIGNED_OUT)
  })

  const invalidUsers: readonly (readonly [title: string, user: unknown])[] = [
    ['no JSON', '{'],
    ['null', 'null'],
    ['a text', '"ada"'],
    ['a list', [ADA]],
    ['an object with other fields', { id: 7 }],
    ['an object with an object for a name', { ...ADA, displayName: {} }],
    ['nested without end', '['.repeat(100_000)]
  ]
  for (const [title, auth_user] of invalidUsers) {
    t.test(`the user is null if the cookie contains ${title}`, async (t) => {
      t.match(sessionState(cookies({ auth_user, auth_token_expiry: LATER }), NOW), { isSignedIn: true, user: null })
    })
  }

  t.test('permissions that are not strings are dropped', async (t) => {
    const text = cookies({ auth_permissions: ['a.b', 7, null, { a: 1 }, 'anything'], auth_token_expiry: LATER })
    t.same(sessionState(text, NOW).permissions, ['a.b', 'anything'])
  })

  t.test('any cookie text is read without an error', async (t) => {
    const value = fc.oneof(fc.string({ unit: 'binary' }), fc.json(), fc.json().map(encodeURIComponent))
    await checkProperty(
      t,
      fc.property(value, value, value, (user, permissions, expiry) => {
        const state = sessionState(
          `auth_user=${user}; auth_permissions=${permissions}; auth_token_expiry=${expiry}`,
          NOW
        )
        return typeof state.isSignedIn === 'boolean'
      })
    )
  })
})

t.test("the backend's permissions", async (t) => {
  const cases: readonly (readonly [response: unknown, expected: readonly string[] | null])[] = [
    [{ success: true, data: { user: { permissions: ['a.b'] } } }, ['a.b']],
    [{ success: true, data: { permissions: ['a.b', 7] } }, ['a.b']],
    [{ permissions: ['a.b'] }, ['a.b']],
    [{ user: { permissions: ['a.b'] } }, ['a.b']],
    [{ data: { user: { permissions: 'a.b' }, permissions: [] } }, []],
    [{ data: null }, null],
    [null, null],
    ['permissions', null],
    [{}, null]
  ]
  for (const [response, expected] of cases) {
    t.test(`the permissions are ${JSON.stringify(expected)} in ${JSON.stringify(response)}`, async (t) => {
      t.same(backendPermissions(response), expected)
    })
  }
})

t.test('the session state accepts exactly the users and expiries that the schemas accept', async (t) => {
  const detail = fc.oneof(
    fc.constant(null),
    fc.constant(''),
    fc.string({ maxLength: 300 }),
    fc.integer(),
    fc.constant(undefined)
  )
  const id = fc.oneof(detail, fc.constantFrom(0, -1, 1.5, 2 ** 53, 'x'.repeat(128), 'x'.repeat(129)))
  const user = fc.record(
    { userId: id, email: detail, displayName: detail, role: detail, extra: detail },
    { requiredKeys: [] }
  )
  const property = fc.property(fc.oneof(user, fc.jsonValue()), (value) => {
    const content = JSON.parse(JSON.stringify(value ?? null))
    if (typeof content === 'string') return // `cookies` sends text without quotes
    const state = sessionState(cookies({ auth_user: content, auth_token_expiry: LATER }), NOW)
    if ((state.user !== null) !== Check(AuthUserSchema, content)) throw new Error('the schema decides differently')
    const isLater = typeof content === 'number' && content > NOW
    const expiry = sessionState(cookies({ auth_token_expiry: content }), NOW).isSignedIn
    if (expiry !== (Check(TokenExpirySchema, content) && isLater)) throw new Error('the expiry is decided differently')
  })
  await checkProperty(t, property)
})
