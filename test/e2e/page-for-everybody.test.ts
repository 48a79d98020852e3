import t from 'tap'
import { startBrowser } from '../helper/browser.js'
import { openDemoPage } from '../helper/demo-page.js'
import { startDemoStack } from '../helper/demo-stack.js'

t.setTimeout(300_000)
const stack = await startDemoStack(t)
const browser = await startBrowser(t)

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }
const PAGES = ['/live/f-1', '/dashboard', '/personnel', '/emergency', '/users', '/audit', '/settings'] as const

t.test('every page', async (t) => {
  t.test('fits a phone, where the menu is behind a button', async (t) => {
    const { page, complaints } = await openDemoPage(t, browser, stack, { as: 'admin', ...PHONE })
    for (const path of PAGES) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
      t.equal(overflow, 0, path)
    }
    t.equal(await page.getByRole('navigation', { name: 'Pages' }).isVisible(), false)
    await page.getByRole('button', { name: 'Open the menu' }).tap()
    await page.getByRole('link', { name: 'Dashboard' }).tap()
    await page.waitForURL('**/dashboard')
    await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'hidden' })
    t.same(complaints, [])
  })

  for (const colorScheme of ['light', 'dark'] as const) {
    t.test(`can be used by everybody in the ${colorScheme} theme`, async (t) => {
      const { page, complaints, findings } = await openDemoPage(t, browser, stack, { as: 'admin', colorScheme })
      for (const path of ['/login', ...PAGES]) {
        await page.goto(path)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.waitForLoadState('networkidle')
        t.same(await findings(), [], path)
      }
      await page.goto('/personnel')
      await page.getByRole('button', { name: 'Add a person' }).click()
      t.same(await findings(), [], 'a form')
      t.same(complaints, [])
    })
  }

  t.test('is reached with the keyboard alone', async (t) => {
    const { page } = await openDemoPage(t, browser, stack, { as: 'admin' })
    await page.goto('/personnel')
    await page.getByRole('cell').first().waitFor()
    await page.keyboard.press('Tab')
    t.equal(await page.locator(':focus').innerText(), 'Skip to the content')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    t.equal((await page.locator(':focus').innerText()).trim(), 'CSV')

    const add = page.getByRole('button', { name: 'Add a person' })
    await add.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByLabel('First name').and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    // The focus is back where it was.
    await add.and(page.locator(':focus')).waitFor()
  })
})
