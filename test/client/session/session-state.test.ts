import fc from 'fast-check'
import t from 'tap'
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
  t.test('is who is signed in, what they may do and until when', async (t) => {
    const text = cookies({ auth_user: ADA, auth_permissions: ['personnel.read'], auth_token_expiry: LATER })
    t.same(sessionState(text, NOW), {
      isSignedIn: true,
      user: ADA,
      permissions: ['personnel.read'],
      expiresAtMs: LATER
    })
  })

  t.test('has unknown permissions where their cookie is missing', async (t) => {
    t.equal(sessionState(cookies({ auth_user: ADA, auth_token_expiry: LATER }), NOW).permissions, null)
  })

  t.test('never looks at the token', async (t) => {
    t.same(sessionState('auth_token=abc', NOW), SIGNED_OUT)
  })

  const noSession: readonly (readonly [why: string, expiry: unknown])[] = [
    ['past its end', NOW - 1],
    ['at its end', NOW],
    ['that never ends', 'null'],
    ['with a text for its end', '"soon"'],
    ['with a fraction', LATER + 0.5],
    ['before 1970', -1],
    ['beyond all numbers', '1e999'],
    ['with a list', [LATER]],
    ['with half a number', '17e'],
    ['without anything', '']
  ]
  for (const [why, auth_token_expiry] of noSession) {
    t.test(`is none ${why}`, async (t) => {
      t.same(sessionState(cookies({ auth_user: ADA, auth_permissions: ['a.b'], auth_token_expiry }), NOW), SIGNED_OUT)
    })
  }

  t.test('is none where there are two ends', async (t) => {
    t.same(sessionState(`auth_token_expiry=${LATER}; auth_token_expiry=${LATER + 1}`, NOW), SIGNED_OUT)
  })

  const nobody: readonly (readonly [why: string, user: unknown])[] = [
    ['no JSON', '{'],
    ['null', 'null'],
    ['a text', '"ada"'],
    ['a list', [ADA]],
    ['an object with other fields', { id: 7 }],
    ['an object with an object for a name', { ...ADA, displayName: {} }],
    ['nested without end', '['.repeat(100_000)]
  ]
  for (const [why, auth_user] of nobody) {
    t.test(`has nobody in it when the cookie holds ${why}`, async (t) => {
      t.match(sessionState(cookies({ auth_user, auth_token_expiry: LATER }), NOW), { isSignedIn: true, user: null })
    })
  }

  t.test('keeps permissions that are texts, and no others', async (t) => {
    const text = cookies({ auth_permissions: ['a.b', 7, null, { a: 1 }, 'anything'], auth_token_expiry: LATER })
    t.same(sessionState(text, NOW).permissions, ['a.b', 'anything'])
  })

  t.test('can be read from any text without a fault', async (t) => {
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
  const cases: readonly (readonly [answer: unknown, expected: readonly string[] | null])[] = [
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
  for (const [answer, expected] of cases) {
    t.test(`are ${JSON.stringify(expected)} in ${JSON.stringify(answer)}`, async (t) => {
      t.same(backendPermissions(answer), expected)
    })
  }
})
