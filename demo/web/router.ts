import { backoffMs, DEFAULT_GUARD_OPTIONS, type Layout, type PageMeta } from 'gatehouse-client'
import { installGuards } from 'gatehouse-client/vue-router'
import { nextTick, shallowRef } from 'vue'
import { createRouter, createWebHistory, type RouteComponent, type RouteRecordRaw } from 'vue-router'
import type { IconName } from '../../src/ui/icons.js'
import { useToasts } from '../../src/ui/useToasts.js'
import { discardUnsavedChanges, mayLosePage } from './composables/useUnsavedChanges.js'
import ErrorPage from './pages/ErrorPage.vue'
import type { ResourceName } from './resources.js'
import { session, sessionEnd } from './services.js'

interface Page {
  readonly path: string
  readonly name: string
  readonly meta: PageMeta
  readonly component: RouteComponent
  readonly props?: { readonly resource: ResourceName; readonly tabs?: readonly string[] }
}

const may = (...permissions: string[]): PageMeta => ({ permissions })
const records = (path: string, name: string, resource: ResourceName, permission: string): Page => ({
  path,
  name,
  meta: may(permission),
  component: () => import('./pages/RecordPage.vue'),
  props: { resource }
})
/** Pages with links to each other. */
const tabbed = (pages: readonly Page[]): readonly Page[] => {
  const tabs = pages.map(({ path }) => path)
  return pages.map((page) => ({ ...page, ...(page.props && { props: { ...page.props, tabs } }) }))
}

export const LIVE_PLAN = 'Live plan'
const EMERGENCY: PageMeta = { permissionsAny: ['emergency.read', 'emergency.trigger'] }

const PEOPLE = tabbed([
  records('/people', 'Employees', 'people', 'personnel.read'),
  records('/people/visitors', 'Visitors', 'visitors', 'transmitters.read'),
  records('/people/contractors', 'Contractors', 'contractors', 'transmitters.read')
])
const SITE = tabbed([
  records('/site/zones', 'Zones', 'zones', 'zones.read'),
  records('/site/receivers', 'Receivers', 'receivers', 'receivers.read'),
  records('/site/transmitters', 'Transmitters', 'transmitters', 'transmitters.read'),
  records('/site/buildings', 'Buildings', 'buildings', 'buildings.update'),
  records('/site/departments', 'Departments', 'departments', 'departments.update'),
  records('/site/users', 'Users', 'users', 'admin.users')
])
const EMERGENCIES = tabbed([
  { path: '/emergency', name: 'Emergency', meta: EMERGENCY, component: () => import('./pages/EmergencyPage.vue') },
  records('/emergency/past', 'Past emergencies', 'past', 'emergency.read'),
  records('/emergency/contacts', 'Emergency contacts', 'contacts', 'emergency.read')
])
export const EMERGENCY_TABS = EMERGENCIES.map(({ path }) => path)

const pages: readonly Page[] = [
  {
    path: '/live/:floorId?',
    name: LIVE_PLAN,
    meta: may('floors.read'),
    component: () => import('./pages/LivePage.vue')
  },
  {
    path: '/dashboard',
    name: 'Dashboard',
    meta: may('dashboard.read'),
    component: () => import('./pages/DashboardPage.vue')
  },
  records('/alerts', 'Alerts', 'alerts', 'alerts.read'),
  ...PEOPLE,
  // Not /assets, which holds the files of the build.
  records('/inventory', 'Assets', 'assets', 'assets.read'),
  ...EMERGENCIES,
  {
    path: '/emergency/:emergencyId',
    name: 'Emergency report',
    meta: may('emergency.read'),
    component: () => import('./pages/EmergencyReportPage.vue')
  },
  records('/floors', 'Floor plans', 'floors', 'floors.update'),
  {
    path: '/floors/:floorId',
    name: 'Floor plan',
    meta: may('floors.update'),
    component: () => import('./pages/FloorPage.vue')
  },
  ...SITE,
  {
    path: '/zones/:zoneId/area',
    name: 'Area of a zone',
    meta: may('zones.update', 'floors.read'),
    component: () => import('./pages/ZoneAreaPage.vue')
  },
  records('/audit', 'Audit log', 'audit', 'audit.read'),
  { path: '/settings', name: 'Settings', meta: { auth: true }, component: () => import('./pages/SettingsPage.vue') }
]

const siteAccess: PageMeta = { permissionsAny: SITE.flatMap(({ meta }) => meta.permissions ?? []) }

interface MenuEntry {
  readonly name: string
  readonly icon: IconName
  readonly path: string
  readonly meta: PageMeta
}
const entry = (name: string, icon: IconName, path: string): MenuEntry => {
  const page = pages.find((one) => one.path.replace('/:floorId?', '') === path)
  return { name, icon, path, meta: page?.meta ?? siteAccess }
}
/** The pages of the menu, with the permissions they require. */
export const menu: readonly MenuEntry[] = [
  entry(LIVE_PLAN, 'plan', '/live'),
  entry('Dashboard', 'dashboard', '/dashboard'),
  entry('Alerts', 'alert', '/alerts'),
  entry('People', 'people', '/people'),
  entry('Assets', 'asset', '/inventory'),
  entry('Emergency', 'emergency', '/emergency'),
  entry('Floor plans', 'floors', '/floors'),
  entry('Site', 'building', '/site'),
  entry('Audit log', 'audit', '/audit'),
  entry('Settings', 'settings', '/settings')
]

const LOGIN_PAGE = '/login'
const NEW_PASSWORD_PAGE = '/new-password'
/** Pages without a menu. */
export const BARE_PAGES = [LOGIN_PAGE, NEW_PASSWORD_PAGE]

const permissionsNow = (): readonly string[] => session.refresh().permissions ?? []
/** The first of the tabs that the user may see. */
const firstSitePage = (): string => {
  const granted = new Set(permissionsNow())
  const first = SITE.find(({ meta }) => meta.permissions?.every((permission) => granted.has(permission)))
  return first?.path ?? '/forbidden'
}

const NO_PERMISSION = { title: 'No permission', note: 'Your account does not have permission to view this page.' }
const NO_PAGE = { title: 'Page not found', note: 'The address may be outdated or mistyped.' }
const routes: RouteRecordRaw[] = [
  { path: '/', redirect: '/live' },
  { path: LOGIN_PAGE, name: 'Sign in', component: () => import('./pages/LoginPage.vue') },
  {
    path: NEW_PASSWORD_PAGE,
    name: 'New password',
    component: () => import('./pages/NewPasswordPage.vue'),
    meta: { auth: true }
  },
  ...pages.map(({ meta, ...page }) => ({ ...page, meta: { ...meta } })),
  { path: '/site', redirect: firstSitePage },
  { path: '/forbidden', name: 'No permission', component: ErrorPage, props: NO_PERMISSION, meta: { auth: true } },
  { path: '/:rest(.*)*', name: 'Page not found', component: ErrorPage, props: NO_PAGE }
]

export const router = createRouter({
  history: createWebHistory(),
  routes,
  // On the live plan, a new query is a selection or a zoom, which must not move the page.
  scrollBehavior: (to, from, saved) => saved ?? (to.name === LIVE_PLAN && from.name === LIVE_PLAN ? false : { top: 0 })
})

router.beforeEach((to, from) => to.path === from.path || mayLosePage())

// Before the other guards: a user who must change the password has no other permission.
router.beforeEach(({ path, fullPath }) => {
  const mustChoose = permissionsNow().includes('password.change')
  if (mustChoose && path !== NEW_PASSWORD_PAGE) return { path: NEW_PASSWORD_PAGE, query: { returnTo: fullPath } }
  return true
})
/** The current layout: set by the device guard on every navigation, and when the window is resized. */
export const layout = shallowRef<Layout>('default')
const onLayout = (decided: Layout): void => {
  layout.value = decided
}
installGuards(router, { session, onLayout })
matchMedia(`(width < ${DEFAULT_GUARD_OPTIONS.mobileBelow}px)`).onchange = ({ matches }) =>
  onLayout(matches ? 'mobile' : 'default')

router.afterEach(async (to, from) => {
  if (from.matched.length === 0 || from.name === to.name) return
  await nextTick()
  // Screen readers announce the focused heading.
  document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
})

// Permissions or page chunks may fail to load, and chunks may be gone after a new release.
let failures = 0
router.onError((_error, to) => {
  if (router.currentRoute.value.matched.length > 0) {
    useToasts().showToast('The page could not be loaded. Try again or reload.')
    return
  }
  // Nothing is shown yet, for example on a display that was reloaded during an outage.
  failures += 1
  setTimeout(() => void router.replace(to.fullPath).catch(() => undefined), backoffMs(failures))
})

session.onChange(({ isSignedIn }) => {
  if (isSignedIn) return
  // The session has expired, or another tab has signed out.
  const { path, fullPath } = router.currentRoute.value
  if (sessionEnd.value === 'left' || path === LOGIN_PAGE) return
  // Also after a rejected request; the sign-in page says so.
  sessionEnd.value = 'over'
  discardUnsavedChanges()
  void router.push({ path: LOGIN_PAGE, query: { returnTo: fullPath } })
})
