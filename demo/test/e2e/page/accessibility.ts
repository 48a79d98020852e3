import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { checkLayouts } from '../../../../test/helper/layouts.js'
import type { PageTests } from './page-tests.js'

const LAPTOP = { viewport: { width: 1440, height: 900 } }
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }

/** Every page of a signed-in user, with its heading. */
const PAGES: readonly (readonly [path: string, heading: string | RegExp])[] = [
  ['/live/f-1', 'Live plan'],
  ['/dashboard', 'Dashboard'],
  ['/alerts', 'Alerts'],
  ['/people', 'Employees'],
  ['/people/visitors', 'Visitors'],
  ['/inventory', 'Assets'],
  ['/emergency', 'Emergency'],
  ['/emergency/past', 'Past emergencies'],
  ['/floors', 'Floor plans'],
  ['/floors/f-2', /^Plan of/],
  ['/site/zones', 'Zones'],
  ['/site/receivers', 'Receivers'],
  ['/site/users', 'Users'],
  ['/zones/3/area', /^Area of/],
  ['/audit', 'Audit log'],
  ['/settings', 'Settings'],
  ['/no-such-page', 'Page not found']
]
const NARROWEST = 320
/** By how many pixels the content is wider than the page. */
const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'

const loaded = async (page: Page, heading: string | RegExp): Promise<void> => {
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  await page.getByText('Loading …').first().waitFor({ state: 'detached' })
}

export const accessibility = async (t: Test, { open }: PageTests): Promise<void> => {
  const pages = t.test('every page', { buffered: true }, async (t) => {
    for (const part of [0, 1]) {
      t.test(`every page fits its window and is accessible in both themes (part ${part + 1} of 2)`, async (t) => {
        const opened = await open(t, { as: 'admin', ...LAPTOP })
        const { page, pageErrors } = opened
        for (const [path, heading] of PAGES.filter((_page, index) => index % 2 === part)) {
          await page.goto(path)
          await loaded(page, heading)
          await checkLayouts(t, opened, path)
          await page.setViewportSize({ width: NARROWEST, height: 700 })
          await eventually(async () => (await page.evaluate<number>(OVERFLOW)) <= 0)
          await page.setViewportSize(LAPTOP.viewport)
        }
        t.same(pageErrors, [])
      })
    }

    t.test('the sign-in page and a form are accessible in both themes', async (t) => {
      const signIn = await open(t, LAPTOP)
      await signIn.page.goto('/login')
      await signIn.page.getByLabel('Password').waitFor()
      await checkLayouts(t, signIn, 'sign-in')
      const opened = await open(t, { as: 'admin', ...LAPTOP })
      await opened.page.goto('/people')
      await opened.page.getByRole('button', { name: 'Add person' }).click()
      await opened.page.getByRole('dialog').getByRole('button', { name: 'Create' }).waitFor()
      await checkLayouts(t, opened, 'a form')
      t.same([...signIn.pageErrors, ...opened.pageErrors], [])
    })
  })

  const menu = t.test('the menu', { buffered: true }, async (t) => {
    t.test('a phone has a menu button, which also appears when the window becomes narrow', async (t) => {
      const phone = (await open(t, { as: 'admin', ...PHONE })).page
      await phone.goto('/settings')
      await phone.getByRole('button', { name: 'Open menu' }).tap()
      await phone.getByRole('link', { name: 'Dashboard' }).tap()
      await phone.waitForURL('**/dashboard')
      await phone.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'hidden' })

      const { page } = await open(t, { as: 'viewer' })
      await page.goto('/dashboard')
      const pages = page.getByRole('navigation', { name: 'Pages' })
      await pages.waitFor()
      await page.setViewportSize({ width: 360, height: 740 })
      await pages.waitFor({ state: 'hidden' })
      await page.getByRole('button', { name: 'Open menu' }).click()
      await page.getByRole('link', { name: 'Dashboard' }).focus()
      await page.keyboard.press('Escape')
      await page.locator('button[aria-controls=menu]:focus').waitFor()
    })

    t.test('the keyboard skips the menu, and a dialog restores the focus', async (t) => {
      const { page } = await open(t, { as: 'admin' })
      await page.goto('/people')
      await page.getByRole('cell').first().waitFor()
      await page.keyboard.press('Tab')
      t.equal(await page.locator(':focus').innerText(), 'Skip to content')
      await page.keyboard.press('Enter')
      await page.locator('main:focus').waitFor()
      const add = page.getByRole('button', { name: 'Add person' })
      await add.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByLabel('First name').and(page.locator(':focus')).waitFor()
      await page.keyboard.press('Escape')
      await add.and(page.locator(':focus')).waitFor()
    })
  })
  await Promise.all([pages, menu])
}
