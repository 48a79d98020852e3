import { type AuthUser, backoffMs, DEFAULT_GUARD_OPTIONS, type Layout, type PageMeta } from 'gatehouse-client'
import { installGuards } from 'gatehouse-client/vue-router'
import { nextTick, shallowRef } from 'vue'
import { createRouter, createWebHistory, type RouteComponent, type RouteRecordRaw } from 'vue-router'
import type { IconName } from '../../src/ui/icons.js'
import { useToasts } from '../../src/ui/useToasts.js'
import { discardUnsavedChanges, hasUnsavedChanges, mayLosePage } from './composables/useUnsavedChanges.js'
import ErrorPage from './pages/ErrorPage.vue'
import { session, sessionEnd } from './services.js'

const page = (path: string, name: string, icon: IconName, meta: PageMeta, component: RouteComponent) => ({
  path,
  name,
  icon,
  meta: { ...meta },
  component
})
const may = (...permissions: string[]): PageMeta => ({ permissions })
const EMERGENCY: PageMeta = { permissionsAny: ['emergency.read', 'emergency.trigger'] }

export const LIVE_PLAN = 'Live plan'

/** The pages in menu order, with the permissions they require. */
export const menu = [
  page('/live/:floorId?', LIVE_PLAN, 'plan', may('floors.read'), () => import('./pages/LivePage.vue')),
  page('/dashboard', 'Dashboard', 'dashboard', may('dashboard.read'), () => import('./pages/DashboardPage.vue')),
  page('/alerts', 'Alerts', 'alert', may('alerts.read'), () => import('./pages/AlertsPage.vue')),
  page('/personnel', 'Personnel', 'people', may('personnel.read'), () => import('./pages/PersonnelPage.vue')),
  page('/visits', 'Visitors', 'visit', may('visits.read'), () => import('./pages/VisitsPage.vue')),
  // Not /assets, which holds the files of the build.
  page('/inventory', 'Assets', 'asset', may('assets.read'), () => import('./pages/AssetsPage.vue')),
  page('/emergency', 'Emergency', 'emergency', EMERGENCY, () => import('./pages/EmergencyPage.vue')),
  page('/buildings', 'Buildings', 'building', may('buildings.update'), () => import('./pages/BuildingsPage.vue')),
  page('/floors', 'Floor plans', 'floors', may('floors.update'), () => import('./pages/FloorsPage.vue')),
  page('/zones', 'Zones', 'zone', may('zones.read'), () => import('./pages/ZonesPage.vue')),
  page('/receivers', 'Receivers', 'channels', may('receivers.read'), () => import('./pages/ReceiversPage.vue')),
  page('/transmitters', 'Transmitters', 'tag', may('transmitters.read'), () => import('./pages/TransmittersPage.vue')),
  page('/users', 'Users', 'users', may('admin.users'), () => import('./pages/UsersPage.vue')),
  page('/audit', 'Audit log', 'audit', may('audit.read'), () => import('./pages/AuditPage.vue')),
  page('/settings', 'Settings', 'settings', { auth: true }, () => import('./pages/SettingsPage.vue'))
]

/** Pages about one record or a part of the settings, which other pages link to. */
const detailPages = [
  {
    path: '/floors/:floorId',
    name: 'Floor plan',
    component: () => import('./pages/FloorPage.vue'),
    meta: { ...may('floors.update') }
  },
  {
    path: '/zones/:zoneId/area',
    name: 'Area of a zone',
    component: () => import('./pages/ZoneAreaPage.vue'),
    meta: { ...may('zones.update', 'floors.read') }
  },
  {
    path: '/settings/channels',
    name: 'Notification channels',
    component: () => import('./pages/ChannelsPage.vue'),
    meta: { ...may('settings.update') }
  },
  {
    path: '/settings/deliveries',
    name: 'Deliveries',
    component: () => import('./pages/DeliveriesPage.vue'),
    meta: { ...may('settings.update') }
  },
  {
    path: '/audit/:entryId',
    name: 'Audit entry',
    component: () => import('./pages/AuditEntryPage.vue'),
    meta: { ...may('audit.read') }
  },
  {
    path: '/emergency/:emergencyId',
    name: 'Emergency report',
    component: () => import('./pages/EmergencyReportPage.vue'),
    meta: { ...may('emergency.read') }
  }
]

const LOGIN_PAGE = '/login'
const NEW_PASSWORD_PAGE = '/new-password'
/** Pages without a menu. */
export const BARE_PAGES = [LOGIN_PAGE, NEW_PASSWORD_PAGE]

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
  ...menu,
  ...detailPages,
  { path: '/help/:topic?', name: 'Help', component: () => import('./pages/HelpPage.vue'), meta: { auth: true } },
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
  const mustChoose = session.refresh().permissions?.includes('password.change') === true
  if (mustChoose && path !== NEW_PASSWORD_PAGE) return { path: NEW_PASSWORD_PAGE, query: { returnTo: fullPath } }
  return mustChoose || path !== NEW_PASSWORD_PAGE ? true : '/'
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

const openLoginPage = (): unknown =>
  router.push({ path: LOGIN_PAGE, query: { returnTo: router.currentRoute.value.fullPath } })

/** The user whose session has ended while a form has unsaved input. The page stays, and asks for the password in a dialog. */
export const waitingUser = shallowRef<AuthUser | null>(null)
export const discardInput = (): void => {
  discardUnsavedChanges()
  waitingUser.value = null
  openLoginPage()
}

let lastUser = session.state.user
session.onChange(({ isSignedIn, user }) => {
  if (isSignedIn) {
    const isOther = waitingUser.value !== null && waitingUser.value.userId !== user?.userId
    lastUser = user
    waitingUser.value = null
    if (!isOther) return
    // The input belongs to somebody else.
    discardUnsavedChanges()
    location.reload()
    return
  }
  // The session has expired, or another tab has signed out.
  if (sessionEnd.value === 'left' || router.currentRoute.value.path === LOGIN_PAGE) return
  // Also after a rejected request; the sign-in page says so.
  sessionEnd.value = 'over'
  if (hasUnsavedChanges() && lastUser?.email) waitingUser.value = lastUser
  else openLoginPage()
})
