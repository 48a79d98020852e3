import t from 'tap'
import { groupsAt, identityOf, isComplete } from '../../../src/gateway/oidc/identity.js'

type Claims = Readonly<Record<string, unknown>>

const ADA = { sub: 'ada', email: 'ada@example.com', name: 'Ada' }

t.test('groups', async (t) => {
  const CASES: readonly (readonly [claims: Claims, path: string, groups: readonly string[], title: string])[] = [
    [{ groups: ['a', 'b'] }, 'groups', ['a', 'b'], 'a list'],
    [{ groups: 'a' }, 'groups', ['a'], 'one alone'],
    [{ groups: ['a', 'a', '', 7, null, ['b']] }, 'groups', ['a'], 'values that are not groups are omitted'],
    [{}, 'groups', [], 'none'],
    [{ realm_access: { roles: ['a'] } }, 'realm_access.roles', ['a'], 'a path'],
    [
      { resource_access: { 'my.client': { roles: ['a'] } } },
      'resource_access.my.client.roles',
      ['a'],
      'a dot in a name'
    ],
    [{ 'https://example.com/roles': ['a'] }, 'https://example.com/roles', ['a'], 'an address as a name'],
    [{ 'a.b': ['whole'], a: { b: ['path'] } }, 'a.b', ['whole'], 'the longest name counts'],
    [{ a: { b: ['x'] } }, 'a.c', [], 'a path that leads nowhere'],
    [{ a: 'text' }, 'a.length', [], 'not into text'],
    [{}, '__proto__.constructor', [], 'not into what every object has'],
    [{}, 'constructor.name', [], 'nor there'],
    [{}, '.', [], 'a dot alone'],
    [{ groups: { a: true } }, 'groups', [], 'an object'],
    [{ groups: 7 }, 'groups', [], 'a number'],
    [
      { groups: ['ünï-😀', 'a\u0000b', 'half \ud83d', ' '] },
      'groups',
      ['ünï-😀'],
      'groups that a database cannot store are omitted'
    ]
  ]
  for (const [claims, path, groups, title] of CASES) {
    t.test(`groups are read at ${path}: ${title}`, async (t) => {
      t.same(groupsAt(claims, path), groups)
    })
  }

  t.test('groups that do not fit are dropped and counted', async (t) => {
    const many = Array.from({ length: 300 }, (_, index) => `group-${index}`)
    const result = identityOf({ ...ADA, groups: many }, 'groups')
    t.equal(result.identity?.groups.length, 100)
    t.equal(result.droppedGroups, 200)
    const long = Array.from({ length: 50 }, (_, index) => `${index}${'ü'.repeat(100)}`)
    for (const person of [ADA, { ...ADA, sub: 'a'.repeat(255), name: 'ü'.repeat(128) }]) {
      const { identity, droppedGroups } = identityOf({ ...person, groups: long }, 'groups')
      t.ok(Buffer.byteLength(JSON.stringify(identity)) <= 2700)
      t.equal(droppedGroups + (identity?.groups.length ?? 0), 50)
    }
  })
})

t.test('identity', async (t) => {
  const CASES: readonly (readonly [claims: Claims, error: string | null, title: string])[] = [
    [ADA, null, 'with an address'],
    [{ ...ADA, email_verified: true }, null, 'with a confirmed address'],
    [{ ...ADA, email: undefined }, 'no-email', 'without an address'],
    [{ ...ADA, email: '' }, 'no-email', 'with an empty one'],
    [{ ...ADA, email: 'ada' }, 'no-email', 'with something else in its place'],
    [{ ...ADA, email: ['ada@example.com'] }, 'no-email', 'with a list'],
    [{ ...ADA, email: 'a@b\r\n@c' }, 'no-email', 'with lines in it'],
    [{ ...ADA, email: `${'a'.repeat(300)}@example.com` }, 'no-email', 'with a very long one'],
    [{ ...ADA, email_verified: false }, 'unconfirmed-email', 'whose email address is not confirmed'],
    [{ ...ADA, email_verified: 'false' }, 'unconfirmed-email', 'whose provider writes that as text'],
    [{ ...ADA, email_verified: 'False' }, 'unconfirmed-email', 'whose provider writes it in capitals'],
    [{ ...ADA, email_verified: 0 }, 'unconfirmed-email', 'whose provider writes it as a number'],
    [{ ...ADA, email_verified: 'True' }, null, 'whose provider writes yes as text'],
    [{ ...ADA, email_verified: null }, null, 'whose provider does not know'],
    [{ ...ADA, sub: '' }, 'no-subject', 'without a name'],
    [{ ...ADA, sub: 7 }, 'no-subject', 'with a number for a name'],
    [{ ...ADA, sub: 'a'.repeat(256) }, 'no-subject', 'with a name that no provider may give']
  ]
  for (const [claims, error, title] of CASES) {
    t.test(`claims ${title}: ${error ?? 'accepted'}`, async (t) => {
      t.equal(identityOf(claims, 'groups').error, error)
    })
  }

  const NAMES: readonly (readonly [claims: object, name: string])[] = [
    [{ name: 'Ada Lovelace' }, 'Ada Lovelace'],
    [{ given_name: 'Ada', family_name: 'Lovelace' }, 'Ada Lovelace'],
    [{ given_name: 'Ada' }, 'Ada'],
    [{ preferred_username: 'ada' }, 'ada'],
    [{}, 'ada@example.com'],
    [{ name: 'x'.repeat(500) }, 'x'.repeat(128)],
    [{ name: `${'x'.repeat(127)}😀😀` }, `${'x'.repeat(127)}😀`],
    [{ name: 'Ada\u0000\r\nLovelace' }, 'Ada   Lovelace'],
    [{ name: 'half \ud83d' }, 'half'],
    [{ name: '\u0007' }, 'ada@example.com'],
    [{ name: ['Ada'] }, 'ada@example.com']
  ]
  for (const [claims, name] of NAMES) {
    t.test(`the name is ${name.slice(0, 20)} for ${JSON.stringify(claims).slice(0, 40)}`, async (t) => {
      t.equal(identityOf({ sub: 'ada', email: 'ada@example.com', ...claims }, 'groups').identity?.name, name)
    })
  }

  t.test('claims with an email address, a name and groups are complete', async (t) => {
    t.equal(isComplete({ ...ADA, groups: [] }, 'groups'), true)
    t.equal(isComplete(ADA, 'groups'), false)
    t.equal(isComplete({ sub: 'ada', groups: [] }, 'groups'), false)
  })
})
