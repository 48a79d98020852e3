import type { Page } from 'playwright-core'
import { PATIENCE_MS } from '../../helper/browser.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'

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
  await page.waitForSelector('#live:text-is("live")')
}

const NO_ANSWER = 'The service behind this page does not answer at the moment.'

/** A proxy fails in front of the service: the page says why, and forgets it when the service answers again. */
export const useDuringFailure = async (page: Page): Promise<void> => {
  const fail = async (path: string): Promise<void> => {
    await page.route(path, (route) => route.fulfill({ status: 502, body: '<h1>502 Bad Gateway</h1>' }))
  }
  await fail('**/api/orders/42/items')
  await page.click('text=Add 10')
  await page.waitForSelector(`#error:text-is("${NO_ANSWER}")`)
  await page.waitForSelector('#error:empty', { state: 'attached' })

  await fail('**/api/negotiate')
  await page.reload()
  await page.waitForSelector(`#live:text-is("offline: ${NO_ANSWER}")`)
  await page.unroute('**/api/negotiate')
  await page.waitForSelector('#live:text-is("live")')
  await page.unroute('**/api/orders/42/items')
}
