import type { Test } from 'tap'
import type { PageTests } from './page-tests.js'

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }
const PAGES = [
  ...[
    '/live/f-1',
    '/dashboard',
    '/alerts',
    '/personnel',
    '/inventory',
    '/emergency',
    '/floors',
    '/zones',
    '/receivers',
    '/transmitters'
  ],
  ...['/users', '/audit', '/settings', '/no-such-page']
]

export const accessibility = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('every page', async (t) => {
    t.test('every page fits the width of a phone and has a menu button', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin', ...PHONE })
      for (const path of PAGES) {
        await page.goto(path)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.waitForLoadState('networkidle')
        // Not innerWidth, which grows with a page that is too wide for a phone.
        t.equal(await page.evaluate('document.documentElement.scrollWidth'), PHONE.viewport.width, path)
      }
      t.equal(await page.getByRole('navigation', { name: 'Pages' }).isVisible(), false)
      await page.getByRole('button', { name: 'Open menu' }).tap()
      await page.getByRole('link', { name: 'Dashboard' }).tap()
      await page.waitForURL('**/dashboard')
      await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'hidden' })
      t.same(pageErrors, [])
    })

    t.test('a page switches to the phone menu when the window becomes narrow', async (t) => {
      const { page } = await open(t, { as: 'viewer' })
      await page.goto('/dashboard')
      const pages = page.getByRole('navigation', { name: 'Pages' })
      await pages.waitFor()
      await page.setViewportSize({ width: 360, height: 740 })
      await pages.waitFor({ state: 'hidden' })
      await page.getByRole('button', { name: 'Open menu' }).click()
      t.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true)
      await page.getByRole('link', { name: 'Dashboard' }).focus()
      await page.keyboard.press('Escape')
      await page.locator('button[aria-controls=menu]:focus').waitFor()
      await pages.waitFor({ state: 'hidden' })
    })

    t.test('every page is accessible in both themes', async (t) => {
      const { page, pageErrors, findings } = await open(t, { as: 'admin', colorScheme: 'light' })
      const look = async (title: string): Promise<void> => {
        t.same(await findings(), [], title)
        // The dark theme differs in colours only.
        await page.emulateMedia({ colorScheme: 'dark' })
        t.same(await findings(['color-contrast']), [], `${title}, dark`)
        await page.emulateMedia({ colorScheme: 'light' })
      }
      for (const path of ['/login', ...PAGES]) {
        await page.goto(path)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.waitForLoadState('networkidle')
        await look(path)
      }
      await page.goto('/personnel')
      await page.getByRole('button', { name: 'Add person' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Create' }).waitFor()
      await look('a form')
      t.same(pageErrors, [])
    })

    t.test('every page can be reached with the keyboard', async (t) => {
      const { page } = await open(t, { as: 'admin' })
      await page.goto('/personnel')
      await page.getByRole('cell').first().waitFor()
      await page.keyboard.press('Tab')
      t.equal(await page.locator(':focus').innerText(), 'Skip to content')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Tab')
      t.equal((await page.locator(':focus').innerText()).trim(), 'CSV')

      const add = page.getByRole('button', { name: 'Add person' })
      await add.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByLabel('First name').and(page.locator(':focus')).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
      // The focus is restored.
      await add.and(page.locator(':focus')).waitFor()
    })
  })
}
