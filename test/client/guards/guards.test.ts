import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { authGuard, deviceGuard, guardVisit, permissionsGuard } from '../../../src/client/guards/guards.js'
import { DEFAULT_GUARD_OPTIONS, OIDC_LOGIN_PATH, type PageMeta, type Visit } from '../../../src/client/guards/visit.js'
import { SIGNED_OUT } from '../../../src/client/session/session-state.js'
import { checkProperty } from '../../helper/property.js'

const signedIn = (permissions: readonly string[] | null = []): Visit['session'] => ({
  isSignedIn: true,
  user: null,
  permissions,
  expiresAtMs: 1
})

const visit = (meta: PageMeta, session: Visit['session'], more: Partial<Visit> & { path?: string } = {}): Visit => ({
  page: { path: more.path ?? '/zones?floor=2', meta },
  session,
  viewport: { width: 1280, height: 800 },
  options: DEFAULT_GUARD_OPTIONS,
  ...more
})

const toForbidden = { outcome: 'redirect', to: '/forbidden' }
const toLogin = { outcome: 'redirect', to: '/login?returnTo=%2Fzones%3Ffloor%3D2' }
const pass = { outcome: 'pass' }

t.test('the auth guard', async (t) => {
  t.test('the auth guard allows pages without requirements', async (t) => {
    t.same(authGuard(visit({}, SIGNED_OUT)), pass)
    t.same(authGuard(visit({ auth: false }, SIGNED_OUT)), pass)
  })

  t.test('the auth guard allows signed-in users', async (t) => {
    t.same(authGuard(visit({ auth: true }, signedIn())), pass)
  })

  t.test('the auth guard redirects to the login with the path to return to', async (t) => {
    t.same(authGuard(visit({ auth: true }, SIGNED_OUT)), toLogin)
  })

  t.test('the auth guard redirects to the identity provider if it is the login', async (t) => {
    const options = { ...DEFAULT_GUARD_OPTIONS, login: OIDC_LOGIN_PATH }
    t.same(authGuard(visit({ auth: true }, SIGNED_OUT, { options })), {
      outcome: 'redirect',
      to: '/auth/oidc/login?returnTo=%2Fzones%3Ffloor%3D2'
    })
  })

  t.test('the auth guard omits a return path that is the start page or unsafe', async (t) => {
    for (const path of ['/', '//evil.example'])
      t.same(authGuard(visit({ auth: true }, SIGNED_OUT, { path })), { outcome: 'redirect', to: '/login' })
  })

  t.test('the auth guard does not redirect the login page to itself', async (t) => {
    t.same(authGuard(visit({ auth: true }, SIGNED_OUT, { path: '/login?returnTo=%2F' })), pass)
  })
})

t.test('the permissions guard', async (t) => {
  const cases: readonly (readonly [
    title: string,
    PageMeta,
    granted: readonly string[] | null,
    expected: { readonly outcome: string }
  ])[] = [
    ['nothing is required', {}, [], pass],
    ['the required lists are empty', { permissions: [], permissionsAny: [] }, [], pass],
    ['the required permission is granted', { permissions: ['a.read'] }, ['a.read'], pass],
    ['all are granted', { permissions: ['a.read', 'b.read'] }, ['b.read', 'c.read', 'a.read'], pass],
    ['one of all is missing', { permissions: ['a.read', 'b.read'] }, ['a.read'], toForbidden],
    ['one of any is granted', { permissionsAny: ['a.read', 'b.read'] }, ['b.read'], pass],
    ['none of any is granted', { permissionsAny: ['a.read', 'b.read'] }, ['c.read'], toForbidden],
    ['both are met', { permissions: ['a.read'], permissionsAny: ['b.read', 'c.read'] }, ['a.read', 'c.read'], pass],
    ['only all is met', { permissions: ['a.read'], permissionsAny: ['b.read'] }, ['a.read'], toForbidden],
    ['only any is met', { permissions: ['a.read'], permissionsAny: ['b.read'] }, ['b.read'], toForbidden],
    ['the permissions are unknown', { permissions: ['a.read'] }, null, toForbidden],
    ['only a part of the name is granted', { permissions: ['a.read.all'] }, ['a.read'], toForbidden],
    ['the permission has the name of an object property', { permissions: ['constructor'] }, [], toForbidden]
  ]
  for (const [title, meta, granted, expected] of cases) {
    t.test(`the permissions guard returns ${expected.outcome} if ${title}`, async (t) => {
      t.same(permissionsGuard(visit(meta, signedIn(granted))), expected)
    })
  }

  t.test('the permissions guard redirects to the login without a session', async (t) => {
    t.same(permissionsGuard(visit({ permissions: ['a.read'] }, SIGNED_OUT)), toLogin)
  })

  t.test('the permissions guard does not redirect the targets of redirects', async (t) => {
    for (const path of ['/forbidden', '/login?x', '/forbidden#a'])
      t.same(permissionsGuard(visit({ permissions: ['a.read'] }, signedIn(), { path })), pass)
  })

  t.test('the permissions guard requires all of one list and any of the other, for any lists', async (t) => {
    const names = fc.subarray(['a', 'b', 'c', 'd', 'e'])
    await checkProperty(
      t,
      fc.property(names, names, names, (all, any, granted) => {
        const expected =
          all.every((name) => granted.includes(name)) && (any.length === 0 || any.some((n) => granted.includes(n)))
        const { outcome } = permissionsGuard(visit({ permissions: all, permissionsAny: any }, signedIn(granted)))
        assert.equal(outcome, expected ? 'pass' : 'redirect')
      })
    )
  })
})

t.test('the device guard', async (t) => {
  const cases: readonly (readonly [width: number, layout: string])[] = [
    [320, 'mobile'],
    [767, 'mobile'],
    [767.5, 'mobile'],
    [768, 'default'],
    [1920, 'default'],
    [0, 'default']
  ]
  for (const [width, layout] of cases) {
    t.test(`the device guard chooses the ${layout} layout for a width of ${width} pixels`, async (t) => {
      t.same(deviceGuard(visit({}, SIGNED_OUT, { viewport: { width, height: 800 } })), { outcome: 'pass', layout })
    })
  }

  t.test('the device guard uses the configured width', async (t) => {
    const options = { ...DEFAULT_GUARD_OPTIONS, mobileBelow: 1400 }
    t.match(deviceGuard(visit({}, SIGNED_OUT, { options })), { layout: 'mobile' })
  })
})

t.test('a navigation', async (t) => {
  t.test('a redirected navigation has a layout', async (t) => {
    const viewport = { width: 400, height: 800 }
    t.same(guardVisit(visit({ auth: true }, SIGNED_OUT, { viewport })), { layout: 'mobile', decision: toLogin })
  })

  t.test('a navigation passes if every guard allows it', async (t) => {
    t.same(guardVisit(visit({ auth: true, permissions: ['a.b'] }, signedIn(['a.b']))), {
      layout: 'default',
      decision: pass
    })
  })

  t.test('a navigation without the permissions is redirected', async (t) => {
    t.same(guardVisit(visit({ auth: true, permissions: ['a.b'] }, signedIn())).decision, toForbidden)
  })
})
