import type { Page } from 'playwright-core'
import { PATIENCE_MS } from '../../helper/browser.js'
import { eventually } from '../../helper/eventually.js'

const signIn = async (page: Page, password: string): Promise<void> => {
  await page.fill('[name=email]', 'ada@example.com')
  await page.fill('[name=password]', password)
  await page.click('text=Sign in')
}

/** Fails to sign in, signs in, adds a cart, waits until a dot of every cart has moved, and signs out. */
export const usePage = async (page: Page, password: string): Promise<void> => {
  page.setDefaultTimeout(PATIENCE_MS)
  await signIn(page, 'a wrong password')
  await page.waitForSelector('#error:not(:empty)')
  await signIn(page, password)
  await page.waitForSelector('li:has-text("Linen (T1)")')
  const carts = (await page.locator('li').count()) + 1
  await page.fill('[name=name]', 'Trolley')
  await page.click('text=Add')
  await page.waitForSelector(`li:nth-child(${carts}):has-text("Trolley (T")`)
  await page.waitForSelector(`circle:nth-child(${carts})`)
  const places = () => page.$$eval('circle', (dots) => dots.map((dot) => dot.getAttribute('cx')))
  const before = await places()
  await eventually(async () => {
    const after = await places()
    return after.length === carts && after.every((position, index) => position !== before[index])
  })
  await page.click('text=Sign out')
  await page.waitForSelector('#login:not([hidden])')
}
