import t from 'tap'
import { createMemoryHistory, createRouter, type RouteRecordRaw, type Router } from 'vue-router'
import { Session } from '../../src/client/session/session.js'
import { installGuards, type RouterGuardOptions } from '../../src/client/vue-router.js'
import { type CookieJar, cookieJar } from '../helper/cookie-jar.js'

const component = { render: () => null }
const ROUTES: RouteRecordRaw[] = [
  { path: '/', component },
  { path: '/login', component },
  { path: '/forbidden', component },
  { path: '/plan', component, meta: { auth: true } },
  { path: '/people', component, meta: { permissions: ['personnel.read', 'personnel.create'] } },
  { path: '/alarm', component, meta: { permissionsAny: ['emergency.read', 'emergency.trigger'] } },
  { path: '/admin', component, meta: { auth: true }, children: [{ path: 'users', component }] },
  { path: '/:rest(.*)*', component }
]

interface GuardedPage {
  readonly router: Router
  readonly jar: CookieJar
  readonly layouts: string[]
  readonly left: string[]
  signIn(permissions: readonly string[] | null): void
}

const open = (options: Partial<RouterGuardOptions> & { fetchUser?: () => Promise<unknown> } = {}): GuardedPage => {
  const jar = cookieJar()
  const { fetchUser = async () => null, ...others } = options
  const session = new Session({ cookies: () => jar.readable, fetchUser })
  const router = createRouter({ history: createMemoryHistory(), routes: ROUTES })
  const layouts: string[] = []
  const left: string[] = []
  installGuards(router, {
    session,
    onLayout: (layout) => void layouts.push(layout),
    leave: (url) => void left.push(url),
    ...others
  })
  return {
    router,
    jar,
    layouts,
    left,
    signIn: (permissions) => {
      jar.set('auth_token_expiry', String(Number.MAX_SAFE_INTEGER))
      if (permissions !== null) jar.set('auth_permissions', JSON.stringify(permissions))
    }
  }
}

const goTo = async ({ router }: GuardedPage, path: string): Promise<string> => {
  await router.push(path)
  return router.currentRoute.value.fullPath
}

t.test('a router with guards', async (t) => {
  t.test('the router redirects to the login with the requested path', async (t) => {
    const page = open()
    t.equal(await goTo(page, '/plan?floor=2'), '/login?returnTo=/plan?floor=2')
    t.equal(page.router.currentRoute.value.query.returnTo, '/plan?floor=2')
  })

  t.test('the router notices a session that started since the last navigation', async (t) => {
    const page = open()
    await goTo(page, '/plan')
    page.signIn([])
    t.equal(await goTo(page, '/plan'), '/plan')
  })

  t.test('a nested page inherits the requirements of its parent', async (t) => {
    t.match(await goTo(open(), '/admin/users'), /^\/login/)
  })

  t.test('the router requires all permissions of one list and any of the other', async (t) => {
    const page = open()
    page.signIn(['personnel.read', 'emergency.trigger'])
    t.equal(await goTo(page, '/people'), '/forbidden')
    t.equal(await goTo(page, '/alarm'), '/alarm')
  })

  t.test('the router waits for permissions that are not in a cookie', async (t) => {
    const page = open({ fetchUser: async () => ({ data: { permissions: ['personnel.read', 'personnel.create'] } }) })
    page.signIn(null)
    t.equal(await goTo(page, '/people'), '/people')
    t.equal(await goTo(page, '/alarm'), '/forbidden')
  })

  t.test('a navigation fails if its permissions cannot be loaded', async (t) => {
    const page = open({
      fetchUser: async () => {
        throw new Error('no network')
      }
    })
    page.signIn(null)
    const errors: unknown[] = []
    page.router.onError((error) => void errors.push(error))
    await t.rejects(page.router.push('/people'), { message: 'no network' })
    t.match(errors, [{ message: 'no network' }])
    t.equal(await goTo(page, '/plan'), '/plan')
  })

  t.test('the router leaves the app for the login of the identity provider', async (t) => {
    const page = open({ guardOptions: { login: '/auth/oidc/login' } })
    t.equal(await goTo(page, '/plan'), '/')
    t.same(page.left, ['/auth/oidc/login?returnTo=%2Fplan'])
  })

  t.test('the router reports the layout on every navigation', async (t) => {
    const widths = [1200, 400, 800]
    const page = open({ viewport: () => ({ width: widths.shift() ?? 0, height: 1 }) })
    for (const path of ['/', '/login', '/forbidden']) await goTo(page, path)
    t.same(page.layouts, ['default', 'mobile', 'default'])
  })

  t.test('the router allows every navigation after the guards are removed', async (t) => {
    const jar = cookieJar()
    const session = new Session({ cookies: () => jar.readable, fetchUser: async () => null })
    const router = createRouter({ history: createMemoryHistory(), routes: ROUTES })
    installGuards(router, { session })()
    await router.push('/plan')
    t.equal(router.currentRoute.value.fullPath, '/plan')
  })
})
