import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import type { Role } from '../../helper/demo-page.js'
import { DEMO_PASSWORD } from '../../helper/demo-stack.js'
import { CLIENT_ERRORS, type PageTests, PLAN } from './page-tests.js'

const signIn = async (page: Page, email: string, password: string): Promise<void> => {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Resolves when the canvas has changed. Only markers are drawn on it. */
const pictureChanges = async (page: Page): Promise<void> => {
  // The tests are compiled without the types of the DOM.
  const before = await page.locator(PLAN).evaluate((canvas: unknown) => (canvas as Canvas).toDataURL())
  await page.waitForFunction(([selector, picture]) => queryPlan(selector).toDataURL() !== picture, [
    PLAN,
    before
  ] as const)
}
/** The part of the DOM types that is used here. */
interface Canvas {
  toDataURL(): string
}
declare const queryPlan: (selector: string) => Canvas

const SITE_PAGES = ['Live plan', 'Dashboard', 'Alerts', 'People', 'Assets', 'Emergency']
const CLOSED = ['/site/users', '/audit', '/floors', '/site/buildings']
const MENUS: readonly (readonly [Role, readonly string[], readonly string[]])[] = [
  ['admin', [...SITE_PAGES, 'Floor plans', 'Site', 'Audit log', 'Settings'], []],
  ['operator', [...SITE_PAGES, 'Site', 'Settings'], CLOSED],
  ['viewer', [...SITE_PAGES, 'Site', 'Settings'], CLOSED]
]

export const sessions = async (t: Test, { stack, open }: PageTests): Promise<void> => {
  await t.test('a session', { buffered: true }, async (t) => {
    t.test('a sign-in leads to the requested page, on which markers move', async (t) => {
      const { page, pageErrors } = await open(t, { reducedMotion: 'no-preference' })
      await page.addInitScript('globalThis.queryPlan = (selector) => document.querySelector(selector)')
      await page.goto('/live/f-2')
      await page.waitForURL('**/login?returnTo=**')

      await signIn(page, 'admin@example.com', DEMO_PASSWORD)
      await page.waitForURL('**/live/f-2')
      await page.getByText('Live', { exact: true }).waitFor()
      await page.getByText('Last update: just now').waitFor()
      await pictureChanges(page)
      await pictureChanges(page)
      t.same(pageErrors, [])
    })

    t.test('an expired session leads to the login page with a message', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer', isSeparate: true })
      await page.clock.install()
      await page.goto('/settings')
      await page.getByRole('heading', { name: 'Settings' }).waitFor()

      await page.clock.fastForward('07:56:00')
      await page.getByText('Your session expires in a few minutes').waitFor()
      await page.getByRole('link', { name: 'Sign in again' }).click()
      await page.waitForURL(/\/login\?returnTo=/)
      await page.getByLabel('Password').fill('not now')
      t.match(page.url(), '/login?returnTo=/settings', 'a user with a session is not redirected')
      await page.goBack()
      await page.getByText('Your session expires in a few minutes').waitFor()
      await page.clock.fastForward('00:05:00')
      await page.getByText('Your session has ended').waitFor()
      t.match(page.url(), '/login?returnTo=')
      t.same(pageErrors, [])
    })

    t.test('a session that the service rejects leads to the login page', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer', expected: CLIENT_ERRORS })
      await page.goto('/settings')
      await page.context().addCookies([{ name: 'auth_token', value: 'a.b.c', url: stack.url, httpOnly: true }])
      await page.goto('/dashboard')
      await page.getByText('Your session has ended').waitFor()
      t.same(pageErrors, [])
    })

    t.test('a wrong password is reported, and after five attempts the waiting time', async (t) => {
      const { page, pageErrors } = await open(t, { expected: CLIENT_ERRORS })
      await page.goto('/login')
      await signIn(page, 'nobody@example.com', 'wrong')
      await page.getByRole('alert').getByText('the password is wrong').waitFor()
      t.equal(await page.getByLabel('Password').inputValue(), '')

      for (let attempt = 2; attempt <= 6; attempt++) {
        const responded = page.waitForResponse('**/api/auth/login')
        await signIn(page, 'nobody@example.com', 'wrong')
        await responded
        // The form is submitted again only after it has cleared the password and shows the result.
        await page.getByRole('alert').waitFor()
      }
      await page.getByRole('alert').getByText('Too many attempts. Try again in 15 minutes.').waitFor()
      t.ok(await page.getByRole('button', { name: 'Sign in' }).isDisabled())
      t.same(pageErrors, [])
    })

    t.test('a password set by an admin must be changed first', async (t) => {
      const admin = await open(t, { as: 'admin' })
      await admin.page.goto('/site/users')
      await admin.page.getByRole('button', { name: 'Add user' }).click()
      const dialog = admin.page.getByRole('dialog')
      await dialog.getByLabel('E-mail address').fill('fresh@example.com')
      await dialog.getByLabel('Initial password').fill(' made-by-an-admin')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await admin.page.getByText('fresh@example.com was added').waitFor()

      const { page, pageErrors, findings } = await open(t, { expected: CLIENT_ERRORS })
      await page.goto('/people')
      await signIn(page, 'fresh@example.com', ' made-by-an-admin')
      await page.getByRole('heading', { name: 'Choose a new password' }).waitFor()
      await page.goto('/live')
      await page.waitForURL('**/new-password?returnTo=/live')
      await page.getByRole('heading', { name: 'Choose a new password' }).waitFor()
      t.equal(await page.getByRole('navigation').count(), 0)
      t.same(await findings(), [])

      const choose = async (password: string, again = password): Promise<void> => {
        await page.getByLabel('New password').fill(password)
        await page.getByLabel('Repeat password').fill(again)
        await page.getByRole('button', { name: 'Continue' }).click()
      }
      await choose('my-own-password', 'my-other-password')
      await page.getByRole('alert').getByText('The passwords do not match.').waitFor()
      await choose(' made-by-an-admin')
      await page.getByRole('alert').getByText('The new password must differ from the current one.').waitFor()
      await choose('my-own-password')
      await page.waitForURL('**/live/**')
      await page.getByText('Live', { exact: true }).waitFor()
      // Later, the current password is required.
      await page.goto('/new-password')
      await page.getByLabel('Current password').fill('wrong')
      await choose('another-password')
      await page.getByRole('alert').getByText('The current password is wrong.').waitFor()
      t.same([...admin.pageErrors, ...pageErrors], [])
    })

    t.test('a sign-out ends the session in every tab', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer' })
      const otherTab = await page.context().newPage()
      await otherTab.goto('/emergency')
      await page.goto('/settings')
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.waitForURL('**/login')
      await otherTab.waitForURL('**/login?returnTo=/emergency')
      t.notOk((await page.context().cookies()).some(({ name }) => name.startsWith('auth_')))
      await page.goto('/people')
      await page.waitForURL('**/login?returnTo=**')
      t.same(pageErrors, [])
    })
  })

  t.test('the pages of a role', { buffered: true }, async (t) => {
    for (const [role, entries, closed] of MENUS) {
      t.test(`the role ${role} sees its pages only`, async (t) => {
        const { page, pageErrors } = await open(t, { as: role })
        await page.goto('/settings')
        const menu = page.getByRole('navigation', { name: 'Pages' })
        // `allInnerTexts` does not wait.
        await menu.getByRole('link').first().waitFor()
        t.same(
          // Without the number of open alerts.
          (await menu.getByRole('link').allInnerTexts()).map((text) => text.replace(/\d+\s+open/, '').trim()),
          entries
        )
        for (const path of closed) {
          await page.goto(path)
          await page.waitForURL('**/forbidden')
        }
        await page.goto('/people')
        await page.getByRole('cell').first().waitFor()
        t.equal(await page.getByRole('button', { name: 'Add person' }).count(), role === 'viewer' ? 0 : 1)
        t.same(pageErrors, [])
      })
    }
  })
}
