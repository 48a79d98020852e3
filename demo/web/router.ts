import { nextTick, watch } from 'vue'
import { createRouter, createWebHistory, type RouteComponent, type RouteRecordRaw } from 'vue-router'
import type { PageMeta } from '../../src/client/guards/visit.js'
import { installGuards } from '../../src/client/vue-router.js'
import type { IconName } from '../../src/ui/icons.js'
import { useLayout } from './composables/useLayout.js'
import ForbiddenPage from './pages/ForbiddenPage.vue'
import NotFoundPage from './pages/NotFoundPage.vue'
import { session, sessionEnd } from './services.js'

export interface MenuEntry {
  readonly path: string
  readonly title: string
  readonly icon: IconName
  readonly meta: PageMeta
  readonly component: RouteComponent
}

const entry = (path: string, title: string, icon: IconName, meta: PageMeta, component: RouteComponent): MenuEntry => ({
  path,
  title,
  icon,
  meta,
  component
})

const may = (...permissions: string[]): PageMeta => ({ permissions })
const EMERGENCY: PageMeta = { permissionsAny: ['emergency.read', 'emergency.trigger'] }
const FLOORS = may('floors.update', 'dashboard.read')

/** The pages in the order of the menu, and who is shown them. */
export const menu: readonly MenuEntry[] = [
  entry('/live', 'Live plan', 'plan', may('floors.read'), () => import('./pages/LivePage.vue')),
  entry('/dashboard', 'Dashboard', 'dashboard', may('dashboard.read'), () => import('./pages/DashboardPage.vue')),
  entry('/personnel', 'Personnel', 'people', may('personnel.read'), () => import('./pages/PersonnelPage.vue')),
  entry('/emergency', 'Emergency', 'emergency', EMERGENCY, () => import('./pages/EmergencyPage.vue')),
  entry('/floors', 'Floors', 'floors', FLOORS, () => import('./pages/FloorsPage.vue')),
  entry('/users', 'Users', 'users', may('admin.users'), () => import('./pages/UsersPage.vue')),
  entry('/audit', 'Audit log', 'audit', may('audit.read'), () => import('./pages/AuditPage.vue')),
  entry('/settings', 'Settings', 'settings', { auth: true }, () => import('./pages/SettingsPage.vue'))
]

export const NEW_PASSWORD_PAGE = '/new-password'

const routes: RouteRecordRaw[] = [
  { path: '/', redirect: '/live' },
  { path: '/login', component: () => import('./pages/LoginPage.vue'), meta: { title: 'Sign in' } },
  {
    path: NEW_PASSWORD_PAGE,
    component: () => import('./pages/NewPasswordPage.vue'),
    meta: { title: 'A new password', auth: true }
  },
  { path: '/forbidden', component: ForbiddenPage, meta: { title: 'Not for you', auth: true } },
  ...menu.map(
    ({ path, title, meta, component }): RouteRecordRaw => ({
      path: path === '/live' ? '/live/:floorId?' : path,
      component,
      meta: { ...meta, title }
    })
  ),
  { path: '/:rest(.*)*', component: NotFoundPage, meta: { title: 'No such page' } }
]

declare module 'vue-router' {
  interface RouteMeta {
    title?: string
  }
}

export const router = createRouter({
  history: createWebHistory(),
  routes,
  scrollBehavior: (_to, _from, saved) => saved ?? { top: 0 }
})

// Before the other guards: whoever must choose a password has no permission for anything else.
router.beforeEach(({ path, fullPath }) => {
  const mustChoose = session.refresh().permissions?.includes('password.change') === true
  if (mustChoose && path !== NEW_PASSWORD_PAGE) return { path: NEW_PASSWORD_PAGE, query: { returnTo: fullPath } }
  return mustChoose || path !== NEW_PASSWORD_PAGE ? true : '/'
})
installGuards(router, { session, onLayout: useLayout().setLayout })

router.afterEach(async (to, from) => {
  document.title = to.meta.title ? `${to.meta.title} · Gatehouse` : 'Gatehouse'
  if (from.matched.length === 0 || from.path === to.path) return
  await nextTick()
  // Whoever does not see the page change is told by the heading.
  document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
})

watch(sessionEnd, (end) => {
  const { path, fullPath } = router.currentRoute.value
  if (end === 'over' && path !== '/login') void router.push({ path: '/login', query: { returnTo: fullPath } })
})
