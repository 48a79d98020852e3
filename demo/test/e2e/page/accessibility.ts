import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { checkLayouts } from '../../../../test/helper/layouts.js'
import type { PageTests } from './page-tests.js'

const LAPTOP = { viewport: { width: 1440, height: 900 } }
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }

/** Pages that a link of another page leads to: the menu entry, the name of the link, and the page's heading. */
const LINKED_PAGES: readonly (readonly [from: string, link: string | RegExp, heading: string | RegExp])[] = [
  ['Floor plans', 'Plan of Main House – First floor', 'Plan of First floor'],
  ['Zones', /^Area of/, /^Area of/],
  ['Emergency', /, report$/, 'Emergency report'],
  ['Audit log', /^Entry of/, 'Audit entry'],
  ['Settings', 'Notification channels', 'Notification channels'],
  ['Settings', 'Deliveries', 'Deliveries']
]

/** Opens in another tab. */
const HELP = 'Help'

const loaded = async (page: Page, heading: string | RegExp): Promise<void> => {
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  await page.getByText('Loading …').first().waitFor({ state: 'detached' })
}

/** Opens a window and a function that opens a page from the menu. */
const openMenu = async (t: Test, { open }: PageTests) => {
  const opened = await open(t, { as: 'admin', ...LAPTOP })
  const { page } = opened
  await page.goto('/settings')
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
  await links.first().waitFor()
  const openFromMenu = async (name: string): Promise<void> => {
    await links.and(page.getByRole('link', { name })).click()
    await loaded(page, name)
  }
  return { ...opened, opened, links, openFromMenu }
}

export const accessibility = async (t: Test, tests: PageTests): Promise<void> => {
  const { open } = tests
  const menu = t.test('every page of the menu', { buffered: true }, async (t) => {
    t.test('every page of the menu fits four widths and is accessible in both themes', async (t) => {
      const { opened, links, openFromMenu, pageErrors } = await openMenu(t, tests)
      const names = (await links.allInnerTexts()).map((text) => text.replace(/\d+\s+open/, '').trim())
      t.ok(names.length > 10, names.join())
      for (const name of names.filter((each) => each !== HELP)) {
        await openFromMenu(name)
        await checkLayouts(t, opened, name)
      }
      t.same(pageErrors, [])
    })
  })

  const others = t.test('every page', { buffered: true }, async (t) => {
    t.test('every page outside of the menu fits four widths and is accessible in both themes', async (t) => {
      const { opened, openFromMenu, page, pageErrors } = await openMenu(t, tests)
      for (const [from, link, heading] of LINKED_PAGES) {
        await openFromMenu(from)
        await page.getByRole('main').getByRole('link', { name: link }).first().click()
        await loaded(page, heading)
        await checkLayouts(t, opened, `${heading}`)
      }
      await page.goto('/help/zones')
      await loaded(page, HELP)
      await checkLayouts(t, opened, HELP)
      for (const path of ['/forbidden', '/no-such-page']) {
        await page.goto(path)
        await page.getByRole('link', { name: 'Go to the live plan' }).waitFor()
        await checkLayouts(t, opened, path)
      }
      t.same(pageErrors, [])
    })

    t.test('forms, details and the playback fit four widths and are accessible in both themes', async (t) => {
      const opened = await open(t, { as: 'admin', ...LAPTOP })
      const { page, pageErrors } = opened
      await page.goto('/personnel')
      await page.getByRole('button', { name: 'Add person' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Create' }).waitFor()
      await checkLayouts(t, opened, 'a form')
      await page.keyboard.press('Escape')

      await page.getByRole('link', { name: 'Live plan' }).click()
      await page.getByRole('region', { name: 'People and assets' }).getByRole('button').first().click()
      await page.getByRole('button', { name: 'Close details' }).waitFor()
      await checkLayouts(t, opened, 'details')
      await page.getByRole('button', { name: 'Play back' }).click()
      await page.getByRole('slider', { name: 'Time' }).waitFor()
      await checkLayouts(t, opened, 'playback')
      t.same(pageErrors, [])
    })

    t.test('the login page fits four widths and is accessible in both themes', async (t) => {
      const opened = await open(t, LAPTOP)
      await opened.page.goto('/login')
      await opened.page.getByLabel('Password').waitFor()
      await checkLayouts(t, opened, 'login')
      t.same(opened.pageErrors, [])
    })

    t.test('a phone has a menu button', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin', ...PHONE })
      await page.goto('/settings')
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

    t.test('every page can be reached with the keyboard', async (t) => {
      const { page } = await open(t, { as: 'admin' })
      await page.goto('/personnel')
      await page.getByRole('cell').first().waitFor()
      await page.keyboard.press('Tab')
      t.equal(await page.locator(':focus').innerText(), 'Skip to content')
      await page.keyboard.press('Enter')
      await page.locator('main:focus').waitFor()
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
  await Promise.all([menu, others])
}
