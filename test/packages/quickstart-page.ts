import type { Page } from 'playwright-core'
import { PATIENCE_MS } from '../helper/browser.js'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'

/** The ports of the pages may be in use. */
export const freePorts = async (): Promise<(text: string) => string> => {
  const ports = new Map<string, string>()
  for (const port of ['3000', '4000', '8100']) ports.set(port, String(await freePort()))
  return (text) => text.replaceAll(/\b(?:3000|4000|8100)\b/g, (port) => ports.get(port) ?? port)
}

const itemsOf = async (page: Page): Promise<number> => Number(await page.textContent('#items'))

/** Marks the counter as soon as it has shown a million. */
export const MARK_MILLION = `new MutationObserver((records) => {
  for (const { addedNodes, target } of records)
    for (const { textContent } of addedNodes) if (textContent === '1000000') target.setAttribute('title', 'seen')
}).observe(document.getElementById('items'), { childList: true })`

/** Fails to sign in, signs in, sees the counter move and sign-out end it. */
export const usePage = async (page: Page, url: string, password: string): Promise<void> => {
  page.setDefaultTimeout(PATIENCE_MS)
  await page.goto(url)
  await page.fill('[name=password]', 'a wrong password')
  await page.click('text=Sign in')
  await page.waitForSelector('#error:has-text("Wrong email or password")')
  await page.fill('[name=password]', password)
  await page.click('text=Sign in')
  await page.waitForSelector('#user:has-text("Ada")')
  await eventually(async () => (await itemsOf(page)) > 0, { label: 'the page shows the counter' })
  const before = await itemsOf(page)
  await eventually(async () => (await itemsOf(page)) > before, { label: 'the counter moves' })
  const items = await itemsOf(page)
  await page.click('text=Add 10')
  await eventually(async () => (await itemsOf(page)) >= items + 10, { label: 'the page shows ten more items' })
}
