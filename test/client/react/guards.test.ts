import { createElement, type FunctionComponent, type ReactNode } from 'react'
import { renderToString } from 'react-dom/server'
import { createMemoryRouter, createStaticHandler, type RouteObject } from 'react-router'
import t, { type Test } from 'tap'
import { createClient } from '../../../src/client/index.js'
import {
  GatehouseProvider,
  RequireSession,
  requireSession,
  useSession,
  useSubscription
} from '../../../src/client/react/index.js'
import { createFakeGateway, type FakeGatewayOptions } from '../../../src/client/testing/index.js'

const ADA = { userId: 'u-1', displayName: 'Ada', permissions: ['orders.read'] }

const clientOf = (t: Test, options: FakeGatewayOptions) => {
  const gateway = createFakeGateway(options)
  const client = createClient(gateway.options)
  t.teardown(() => client.close())
  return { gateway, client }
}

const PAGES: readonly {
  readonly title: string
  readonly user?: typeof ADA
  readonly path: string
  readonly shows: string
}[] = [
  { title: 'a signed-in user sees the page', user: ADA, path: '/orders', shows: '/orders' },
  {
    title: 'a signed-out user is redirected to the login, with the page to return to',
    path: '/orders?page=2',
    shows: '/login?returnTo=%2Forders%3Fpage%3D2'
  },
  { title: 'a user with the permission sees the page', user: ADA, path: '/reports', shows: '/reports' },
  {
    title: 'a user without the permission is redirected',
    user: { ...ADA, permissions: ['orders.write'] },
    path: '/reports',
    shows: '/forbidden'
  }
]

for (const { title, user, path, shows } of PAGES) {
  t.test(`with the loader of React Router, ${title}`, async (t) => {
    const { client } = clientOf(t, user ? { user } : {})
    const routes: RouteObject[] = [
      { path: '/orders', loader: requireSession(client) },
      { path: '/reports', loader: requireSession(client, { permissions: ['orders.read'] }) },
      { path: '/login' },
      { path: '/forbidden' }
    ]
    const router = createMemoryRouter(routes, { initialEntries: ['/login'] })
    t.teardown(() => router.dispose())
    await router.navigate(path)
    const { pathname, search } = router.state.location
    t.equal(pathname + search, shows)
    if (user !== undefined && shows === path)
      t.match(Object.values(router.state.loaderData ?? {}), [{ user: { userId: 'u-1' } }])
  })

  t.test(`with RequireSession, ${title}`, async (t) => {
    const { client } = clientOf(t, user ? { user } : {})
    const permissions = path === '/reports' ? { permissions: ['orders.read'] } : {}
    const redirect = (to: string): ReactNode => to
    const page = createElement(RequireSession, { path, redirect, ...permissions }, path)
    const html = renderToString(createElement(GatehouseProvider, { client, serverSession: client.session.state }, page))
    t.equal(html, shows)
  })
}

t.test('the loader leaves the web application for a login at the identity provider', async (t) => {
  const { client } = clientOf(t, {})
  const loader = requireSession(client, {}, { login: '/auth/oidc/login' })
  const { query } = createStaticHandler([{ path: '/orders', loader }])
  const response = await query(new Request('http://localhost/orders'))
  t.ok(response instanceof Response)
  const { headers } = response as Response // checked above
  t.equal(headers.get('location'), '/auth/oidc/login?returnTo=%2Forders')
  t.equal(headers.get('x-remix-reload-document'), 'true')
})

t.test('the loader requests permissions that are not in the cookie, and fails if it cannot', async (t) => {
  let isAvailable = true
  const { gateway } = clientOf(t, {
    user: ADA,
    routes: {
      'GET /api/auth/backend-me': () =>
        isAvailable ? { data: { permissions: ['orders.read'] } } : Response.json({}, { status: 503 })
    }
  })
  // As if they did not fit into a cookie.
  const cookies = (): string => gateway.options.cookies().replace(/auth_permissions=[^;]*;? ?/, '')
  const client = createClient({ ...gateway.options, cookies })
  t.teardown(() => client.close())
  t.equal(client.session.state.permissions, null)
  const load = () =>
    requireSession(client, { permissions: ['orders.read'] })({ request: new Request('http://localhost/reports') })
  isAvailable = false
  await t.rejects(load(), { code: 'BACKEND_REFUSED' })
  isAvailable = true
  t.match(await load(), { permissions: ['orders.read'] })
})

t.test('a server renders the session that it is given, and opens nothing', async (t) => {
  const { gateway, client } = clientOf(t, { user: ADA })
  const Page: FunctionComponent = () => {
    const { state } = useSubscription('orders:42')
    return `${useSession().user?.displayName ?? 'signed out'} ${state}`
  }
  const render = (props: object): string =>
    renderToString(createElement(GatehouseProvider, { client, ...props }, createElement(Page)))
  t.equal(render({}), 'signed out subscribing')
  t.equal(render({ serverSession: client.session.state }), 'Ada subscribing')
  t.same([gateway.requests.length, gateway.connections], [0, 0])
})
