import { nextTick, watch } from 'vue'
import { createRouter, createWebHistory, type RouteRecordRaw } from 'vue-router'
import type { PageMeta } from '../../src/client/guards/visit.js'
import { installGuards } from '../../src/client/vue-router.js'
import type { IconName } from '../../src/ui/icons.js'
import { useLayout } from './composables/useLayout.js'
import { session, sessionEnd } from './services.js'

export interface MenuEntry {
  readonly path: string
  readonly title: string
  readonly icon: IconName
  readonly meta: PageMeta
}

/** The pages in the order of the menu, and who is shown them. */
export const menu: readonly MenuEntry[] = [
  { path: '/live', title: 'Live plan', icon: 'plan', meta: { permissions: ['floors.read'] } },
  { path: '/dashboard', title: 'Dashboard', icon: 'dashboard', meta: { permissions: ['dashboard.read'] } },
  { path: '/personnel', title: 'Personnel', icon: 'people', meta: { permissions: ['personnel.read'] } },
  {
    path: '/emergency',
    title: 'Emergency',
    icon: 'emergency',
    meta: { permissionsAny: ['emergency.read', 'emergency.trigger'] }
  },
  { path: '/users', title: 'Users', icon: 'users', meta: { permissions: ['admin.users'] } },
  { path: '/audit', title: 'Audit log', icon: 'audit', meta: { permissions: ['audit.read'] } },
  { path: '/settings', title: 'Settings', icon: 'settings', meta: { auth: true } }
]

const pages = {
  '/live': () => import('./pages/LivePage.vue'),
  '/dashboard': () => import('./pages/DashboardPage.vue'),
  '/personnel': () => import('./pages/PersonnelPage.vue'),
  '/emergency': () => import('./pages/EmergencyPage.vue'),
  '/users': () => import('./pages/UsersPage.vue'),
  '/audit': () => import('./pages/AuditPage.vue'),
  '/settings': () => import('./pages/SettingsPage.vue')
} as const

const routes: RouteRecordRaw[] = [
  { path: '/', redirect: '/live' },
  { path: '/login', component: () => import('./pages/LoginPage.vue'), meta: { title: 'Sign in' } },
  {
    path: '/forbidden',
    component: () => import('./pages/ForbiddenPage.vue'),
    meta: { title: 'Not for you', auth: true }
  },
  ...menu.map(
    ({ path, title, meta }): RouteRecordRaw => ({
      path: path === '/live' ? '/live/:floorId?' : path,
      component: pages[path as keyof typeof pages],
      meta: { ...meta, title }
    })
  ),
  { path: '/:rest(.*)*', component: () => import('./pages/NotFoundPage.vue'), meta: { title: 'No such page' } }
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
